package conformance

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

var hwconnCases = []Case{
	{ID: "HW-0", Claim: "an adapter opened without an asynchronous dispatcher has one of its own, and closes", run: func(r *rig) {
		ia := r.open()
		require.NotNil(r, ia.Async())
		r.none(ia.Async())
		require.NoError(r, ia.CloseGraceful())
	}},
	{ID: "HW-1", Claim: "a name that nobody has is PROVIDER_NOT_FOUND", run: func(r *rig) {
		for _, name := range []string{"40", "x", "xsdf", "x34", "34df"} {
			_, err := dat.Open(context.Background(), name)
			assert.ErrorIs(r, err, dat.ErrProviderNotFound, name)
		}
	}},
	{ID: "HW-2", Claim: "closing no adapter is INVALID_HANDLE", run: func(r *rig) {
		var ia *dat.IA
		assert.ErrorIs(r, ia.CloseGraceful(), code(hw.InvalidHandle, hw.HandleIA))
		assert.ErrorIs(r, ia.Close(), code(hw.InvalidHandle, hw.HandleIA))
	}},
	{ID: "HW-3", Claim: "an abrupt close takes along what lives on the adapter", run: func(r *rig) {
		a, b := r.pair()
		b.postRecv(1, 64)
		require.NoError(r, b.ia.Close())
		assert.ErrorIs(r, b.ep.PostSend(1, 0, b.mem.Segment(0, 0)), dat.ErrInvalidHandle)
		ev := a.next(a.conn)
		assert.Contains(r, []dat.EventNumber{dat.Disconnected, dat.Broken}, ev.Number, "the peer hears of it")
	}},
	{ID: "HW-4", Claim: "a graceful close with something alive is refused and harmless", run: func(r *rig) {
		n := r.node()
		e := n.end()
		require.ErrorIs(r, n.ia.CloseGraceful(), code(hw.InvalidState, hw.StateIAInUse))
		require.NoError(r, e.ep.PostRecv(1, 0, e.mem.Segment(0, 64)), "the adapter is usable still")
		r.connect(r.node().end(), e)
	}},
	{ID: "HW-5", Claim: "an adapter that was closed is INVALID_HANDLE", run: func(r *rig) {
		ia := r.open()
		require.NoError(r, ia.CloseGraceful())
		assert.ErrorIs(r, ia.CloseGraceful(), code(hw.InvalidHandle, hw.HandleIA))
		assert.NoError(r, ia.Close(), "an abrupt close of what is closed does nothing")
		_, err := ia.NewPZ()
		assert.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandleIA))
		_, err = ia.Query(dat.IAFieldAll, dat.ProviderFieldAll)
		assert.ErrorIs(r, err, code(hw.InvalidHandle, hw.HandleIA))
	}},
	{ID: "HW-6", Claim: "an abrupt close takes CNOs, windows and shared receive queues along", needs: needs(windows, sharedReceives), run: func(r *rig) {
		n := r.node()
		c, q, w := n.cno(), n.srq(dat.SRQAttr{}), n.window()
		require.NoError(r, q.PostRecv(1, n.lmr(64).Segment(0, 64)))
		require.NoError(r, n.ia.Close())
		refuses(r, c.Query, dat.CNOFieldAll, code(hw.InvalidHandle, hw.HandleCNO))
		refuses(r, q.Query, dat.SRQFieldAll, code(hw.InvalidHandle, hw.HandleSRQ))
		refuses(r, w.Query, dat.RMRFieldAll, code(hw.InvalidHandle, hw.HandleRMR))
	}},
	{ID: "HW-8", Claim: "another version of the API is PROVIDER_NOT_FOUND", run: func(r *rig) {
		_, err := dat.Open(context.Background(), r.p.IA, r.p.options(dat.WithVersion(3, 0))...)
		require.ErrorIs(r, err, code(hw.ProviderNotFound, hw.MajorNotFound))
	}},
}
