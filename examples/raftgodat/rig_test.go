package raftgodat

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// patience is what a test waits for what comes soon.
const patience = time.Minute

// onEach runs a test on each device.
func onEach(t *testing.T, test func(t *testing.T, ia *dat.IA)) {
	for name, open := range adapters {
		t.Run(name, func(t *testing.T) {
			ia, err := open(t)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, ia.CloseGraceful(), "something is left") })
			test(t, ia)
		})
	}
}

// open is a transport until the test ends.
func open(t *testing.T, ia *dat.IA, cfg Config) *Transport {
	t.Helper()
	tr, err := New(t.Context(), ia, ":0", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, tr.Close()) })
	return tr
}

// next is the next request that comes to a transport.
func next(t *testing.T, tr *Transport) raft.RPC {
	t.Helper()
	select {
	case r := <-tr.Consumer():
		return r
	case <-time.After(patience):
		t.Error("no request came")
		return raft.RPC{RespChan: make(chan raft.RPCResponse, 1)}
	}
}

// answer answers the next request.
func answer(t *testing.T, tr *Transport, response any, err error) (command any) {
	t.Helper()
	r := next(t, tr)
	r.Respond(response, err)
	return r.Command
}

var header = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("one"), Addr: []byte("10.0.0.1:7000")}

// entries are some that all differ, of so many bytes.
func entries(first uint64, sizes ...int) (all []*raft.Log) {
	for i, n := range sizes {
		e := &raft.Log{Index: first + uint64(i), Term: 7, Type: raft.LogCommand, AppendedAt: time.Unix(100, int64(i))}
		for j := range n {
			e.Data = append(e.Data, byte(j*7+i+j>>8))
		}
		if i%2 == 1 {
			e.Extensions = []byte{byte(i), 0, 1}
		}
		all = append(all, e)
	}
	return all
}
