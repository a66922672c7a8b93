package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/hw"
	"godat/mem"
	"godat/runtime/rpc"
)

// hostile is a client that calls what it likes, with memory of its own.
func (f *fixture) hostile() (*rpc.Client, *mem.LMR) {
	f.Helper()
	c, err := rpc.Dial(f.Context(), f.ia, f.server.Addr(), rpc.Config{})
	require.NoError(f, err)
	memory, err := c.PZ().Alloc(1<<16, hw.AllPrivileges)
	require.NoError(f, err)
	f.Cleanup(func() {
		assert.NoError(f, memory.Free())
		assert.NoError(f, c.Close())
	})
	return c, memory
}

func TestARequestThatIsNoneIsRefused(t *testing.T) {
	f := serve(t, 2)
	good := f.link()
	c, memory := f.hostile()
	kept := f.roundTrip(good, "a block of the store")
	name := block.IDOf(memory.Bytes()[:100])
	for what, tc := range map[string]struct {
		call rpc.Call
		want string
	}{
		"no method":             {rpc.Call{Payload: name[:]}, "not a request"},
		"an unknown method":     {rpc.Call{Method: 99, Payload: name[:]}, "not a request"},
		"no name":               {rpc.Call{Method: proto.Get, Sink: memory.Remote(0, 100)}, "not a request"},
		"a short name":          {rpc.Call{Method: proto.Get, Payload: name[:31], Sink: memory.Remote(0, 100)}, "not a request"},
		"a long name":           {rpc.Call{Method: proto.SetRoot, Payload: append(name[:], 0)}, "not a request"},
		"a block of nothing":    {rpc.Call{Method: proto.Put, Payload: name[:]}, "a block of 0 bytes"},
		"a block too long":      {rpc.Call{Method: proto.Put, Payload: name[:], Source: memory.Remote(0, limits.Block+1)}, "a block of 4097 bytes"},
		"another block":         {rpc.Call{Method: proto.Put, Payload: name[:], Source: memory.Remote(0, 101)}, "damaged on the way"},
		"no room for the block": {rpc.Call{Method: proto.Get, Payload: kept[:], Sink: memory.Remote(0, 9)}, "the caller has 9"},
	} {
		t.Run(what, func(t *testing.T) {
			_, err := c.Call(t.Context(), tc.call, nil)
			var failed *rpc.Error
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, tc.want)
			f := &fixture{T: t, ia: f.ia, server: f.server}
			f.roundTrip(good, "the others do not notice: "+what)
		})
	}
	_, err := f.store.Get(name, make([]byte, 4096))
	assert.Error(t, err, "nothing was stored")
}

func TestMemoryThatAClientHasNotEndsItsConnectionAlone(t *testing.T) {
	f := serve(t, 2)
	good := f.link()
	for _, method := range []uint16{proto.Put, proto.Get} {
		c, memory := f.hostile()
		name := f.roundTrip(good, "a block of the store")
		guessed := memory.Remote(0, 100)
		guessed.Context += 1 << 8
		_, err := c.Call(t.Context(), rpc.Call{Method: method, Payload: name[:], Source: guessed, Sink: guessed}, nil)
		require.ErrorIs(t, err, rpc.ErrEnded)
		require.NoError(t, memory.Free())
		require.NoError(t, c.Close())
		f.roundTrip(good, "the others do not notice")
	}
}
