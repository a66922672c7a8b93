package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
)

// directPair is a pair of sides that post directly.
func directPair(t testing.TB) (a, b *side) {
	a, b = pair(t, nil)
	a.direct, b.direct = true, true
	return a, b
}

// A Break of the peer at whatever point of a direct request waits until the request is
// done, and is not forgotten.
func TestABreakAtAnyPointOfADirectRequest(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		x, y := directPair(t)
		y.recv(1, y.sge(0, 8))
		return func() { x.post(send(2, x.sge(0, 8))) }, func() { y.qp.Break(true) }, func() {
			assert.True(t, y.recvs.ended())
			assert.True(t, y.sends.ended())
			assert.Equal(t, hw.ReasonPeer, x.facts.isDown())
			require.Len(t, x.sends.all(), 1)
			assert.Equal(t, x.sends.all()[0].Status, y.recvs.all()[0].Status)
		}
	})
}

// Two connected queue pairs that are broken from both ends, each in the middle of the
// other's Break, wait for nothing.
func TestBothEndsBreakAtAnyPointOfEachOther(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		x, y := directPair(t)
		return func() { x.qp.Break(true) }, func() { y.qp.Break(true) }, func() {
			for _, s := range []*side{x, y} {
				assert.True(t, s.sends.ended())
				assert.True(t, s.recvs.ended())
			}
		}
	})
}

// A request does not pass those that the holder of the pipe's token is executing.
func TestADirectRequestAtAnyPointOfReceivesKeepsTheOrder(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		x, y := directPair(t)
		x.post(send(1, x.sge(0, 8)))
		x.post(send(2, x.sge(0, 8)))
		receives := []hw.RecvWR{{ID: 3, SGL: []hw.SGE{y.sge(0, 8)}}, {ID: 4, SGL: []hw.SGE{y.sge(8, 8)}}}
		receive := func() {
			_, err := y.qp.PostRecv(receives)
			require.NoError(t, err)
		}
		write := hw.SendWR{ID: 5, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(0, 8)}, RKey: y.mr.RKey(), RemoteAddr: y.addr(0)}
		return receive, func() { x.post(write) }, func() {
			var ids []uint64
			for _, wc := range x.sends.all() {
				ids = append(ids, wc.ID)
			}
			assert.Equal(t, []uint64{1, 2, 5}, ids)
		}
	})
}
