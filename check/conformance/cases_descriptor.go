package conformance

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

var descriptorCases = []Case{
	{ID: "CN-5", Claim: "a foreign poll loop sees on a descriptor when a CNO is triggered", needs: needs(descriptor), run: func(r *rig) {
		client, server := r.node(), r.node().end()
		c, err := client.ia.NewCNO(dat.CNOConfig{Descriptor: true})
		require.NoError(r, err)
		client.later(c.Close)
		fd, err := c.FD()
		require.NoError(r, err)
		loop := newPollLoop(r, fd)
		require.False(r, loop.readable(r, 0), "it is not triggered")

		// The CNO is triggered by software events of one dispatcher and completions of
		// another.
		soft := client.watched(c, 8)
		d := client.dispatcherOf(dat.DispatcherConfig{QLen: 64, Streams: dat.StreamDTO, CNO: c})
		e := client.end(func(cfg *dat.EndpointConfig) { cfg.Recv = d })
		r.connect(e, server)
		post(r, soft, 1, 2)
		require.True(r, loop.readable(r, patience))
		require.True(r, loop.readable(r, 0), "until it is taken")
		by, err := c.Trigger()
		require.NoError(r, err)
		require.Same(r, soft, by)
		require.False(r, loop.readable(r, 0), "it was taken")
		for i := range 2 {
			assert.Equal(r, 1+i, payload(r, r.next(soft)))
		}

		for i := range uint64(r.p.Scale.of(400, 20)) {
			e.postRecv(i, 64)
			server.postSend(i, 8)
			require.True(r, loop.readable(r, patience), "round %d", i)
			by, err := c.Wait(r.soon())
			require.NoError(r, err)
			require.Same(r, d, by)
			require.False(r, loop.readable(r, 0))
			e.done(e.recv, i, dat.StatusSuccess)
			server.done(server.req, i, dat.StatusSuccess)
		}
		_, err = client.cno().FD()
		require.ErrorIs(r, err, dat.ErrInvalidState, "one without a descriptor")
	}},
}

// descriptor: CNOs have a descriptor that a program can poll. The operating system
// decides that, not the device.
var descriptor = &capability{"descriptor", func(r *rig) bool {
	c, err := r.node().ia.NewCNO(dat.CNOConfig{Descriptor: true})
	if err != nil {
		return r.granted(err)
	}
	return r.granted(c.Close())
}}
