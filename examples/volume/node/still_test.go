package node

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"

	"godat/hw"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// deaf is a way to an address, at which a caller hears nothing once a test says so.
type deaf struct {
	net.Listener
	to   string
	shut atomic.Bool
	over chan struct{}
	runs sync.WaitGroup
}

// newDeaf is a way for one connection, until the test ends.
func newDeaf(t *testing.T, to string) *deaf {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	d := &deaf{Listener: l, to: to, over: make(chan struct{})}
	d.runs.Go(func() {
		there, err := l.Accept()
		if !assert.NoError(t, err) {
			return
		}
		here, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
		if assert.NoError(t, err) {
			d.runs.Go(func() { _, _ = io.Copy(here, there) }) // until either end is closed
			d.runs.Go(func() { d.back(there, here) })
			<-d.over
			_ = here.Close()
		}
		_ = there.Close()
	})
	t.Cleanup(func() {
		close(d.over)
		assert.NoError(t, l.Close())
		d.runs.Wait()
	})
	return d
}

// back brings what comes back.
func (d *deaf) back(there, here net.Conn) {
	b := make([]byte, 64<<10)
	for {
		n, err := here.Read(b)
		if d.shut.Load() {
			<-d.over
		}
		if _, e := there.Write(b[:n]); err != nil || e != nil {
			return
		}
	}
}

func TestAFollowerReadsForANewLeaderThoughTheOneBeforeStandsStill(t *testing.T) {
	f := newFollowerOn(t, "iwarp:127.0.0.1", "127.0.0.1:0", Config{stall: time.Hour})
	close(f.slots.open)
	close(f.disk.open)
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	way := newDeaf(t, f.Addr())
	before, err := rpc.Dial(t.Context(), ia, way.Addr().String(), rpc.Config{Calls: calls, Message: mostMessage})
	require.NoError(t, err)
	memory, err := before.PZ().Register(make([]byte, layout.Size()), hw.RemoteRead)
	require.NoError(t, err)
	old := f.write(2, 1, 1, 4, 0xa1)
	old.To = new(f.cfg.ID)
	b, err := appendMessage(f.noteOf(2), old)
	require.NoError(t, err)
	way.shut.Store(true)
	ended := make(chan error)
	go func() {
		_, err := before.Call(t.Context(), rpc.Call{Method: methodMessage, Payload: b, Source: memory.Remote(0, layout.Size())}, nil)
		ended <- err
	}()
	require.Eventually(t, func() bool { return f.door.reads.Load() != nil }, patient, time.Millisecond)

	next := f.write(3, 2, 1, 5, 0xa2)
	next.LogTerm = new(uint64(0))
	require.NoError(t, f.say(next))
	f.answers(pb.MsgAppResp)
	require.NoError(t, memory.Free())
	require.NoError(t, before.Close())
	require.Error(t, <-ended)
	require.NoError(t, ia.Close())
}
