package loop

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
)

// values are what the side's peer needs.
func (s *side) values() hw.PairAddr {
	v, err := s.dev.(hw.Pairer).Local(s.qp)
	require.NoError(s.t, err)
	return v
}

func (s *side) pairWith(v hw.PairAddr) error { return s.dev.(hw.Pairer).Pair(s.qp, v) }

// halfPaired returns two sides, of which the first has paired with the second.
func halfPaired(t testing.TB) (x, y *side) {
	dev := open(t, uniqueName())
	x, y = newSide(t, dev, nil), newSide(t, dev, nil)
	require.NoError(t, x.pairWith(y.values()))
	require.NotNil(t, x.facts.established())
	return x, y
}

// bothOrders runs a test of two calls that meet at any point of each other.
func bothOrders(setUp func() (one, other, check func())) {
	yield.Interleave(setUp)
	yield.Interleave(func() (one, other, check func()) {
		one, other, check = setUp()
		return other, one, check
	})
}

func TestASendThatIsPostedAsThePeerPairsArrives(t *testing.T) {
	bothOrders(func() (one, other, check func()) {
		x, y := halfPaired(t)
		y.recv(2, y.sge(0, 8))
		v := x.values()
		return func() { x.post(send(1, x.sge(0, 8))) }, func() { assert.NoError(t, y.pairWith(v)) }, func() {
			assert.Equal(t, []hw.WC{{ID: 1, Len: 8, Op: hw.OpSend}}, x.sends.all())
			assert.Equal(t, []hw.WC{{ID: 2, Len: 8, Op: hw.OpRecv}}, y.recvs.all())
		}
	})
}

func TestADrainMeetsThePairOfThePeerAtAnyPoint(t *testing.T) {
	bothOrders(func() (one, other, check func()) {
		x, y := halfPaired(t)
		y.recv(2, y.sge(0, 8))
		x.post(send(1, x.sge(0, 8)))
		v := x.values()
		return x.qp.Drain, func() { assert.NoError(t, y.pairWith(v)) }, func() {
			assert.Equal(t, hw.ReasonDrained, x.facts.isDown())
			assert.Equal(t, []hw.WC{{ID: 1, Len: 8, Op: hw.OpSend}}, x.sends.all())
		}
	})
}

// The end that pairs hears of the peer's end, or Pair finds that the peer is gone.
func TestABreakMeetsThePairOfThePeerAtAnyPoint(t *testing.T) {
	bothOrders(func() (one, other, check func()) {
		x, y := halfPaired(t)
		x.post(send(1, x.sge(0, 8)))
		v := x.values()
		var err error
		return func() { x.qp.Break(true) }, func() { err = y.pairWith(v) }, func() {
			assert.Equal(t, []hw.WC{{ID: 1, Status: hw.StatusFlushed, Op: hw.OpSend}, {ID: sendEnd, Op: hw.OpEnd}}, x.sends.all())
			assert.Equal(t, []hw.WC{{ID: recvEnd, Op: hw.OpEnd}}, x.recvs.all())
			if err != nil {
				assert.ErrorIs(t, err, hw.ErrInvalidParameter)
				assert.Nil(t, y.facts.established())
				return
			}
			assert.Equal(t, hw.ReasonPeer, y.facts.isDown())
		}
	})
}

func TestPairOverlooksNoEndOfThePeerNorHowItEnded(t *testing.T) {
	for inOrder, why := range map[bool]hw.Reason{false: hw.ReasonBroken, true: hw.ReasonPeer} {
		dev := open(t, uniqueName())
		x, y := newSide(t, dev, nil), newSide(t, dev, nil)
		x.facts.onEst = func() { y.qp.Break(inOrder) }
		require.NoError(t, x.pairWith(y.values()))
		assert.Equal(t, why, x.facts.isDown())
	}
}

func TestAnEndWhoseCallerIsOverPairsWithAnother(t *testing.T) {
	x, y := halfPaired(t)
	z := newSide(t, x.dev, nil)
	require.ErrorIs(t, z.pairWith(y.values()), hw.ErrInvalidParameter, "x has paired with it")
	x.qp.Break(false)
	require.NoError(t, z.pairWith(y.values()))
	require.NoError(t, y.pairWith(z.values()))
	y.recv(2, y.sge(0, 8))
	z.post(send(1, z.sge(0, 8)))
	assert.Len(t, y.recvs.all(), 1)
}

// Both ends may connect the two at the same time.
func TestTwoEndsThatPairLockInOneOrder(t *testing.T) {
	dev := open(t, uniqueName())
	first, last := newSide(t, dev, nil), newSide(t, dev, nil)
	if first.values().QPN > last.values().QPN {
		first, last = last, first
	}
	require.NoError(t, first.pairWith(last.values()))
	values := first.values()
	locked := &first.qp.(*queuePair).conn.Mu
	other := last.qp.(*queuePair).conn
	locked.Lock()
	paired := make(chan error, 1)
	go func() { paired <- last.pairWith(values) }()
	for waits := 0; waits < 1000; runtime.Gosched() {
		if other.Mu.TryLock() {
			if other.Phase == waiting {
				waits++
			}
			other.Mu.Unlock()
		} else if waits++; waits == 1000 {
			assert.Fail(t, "it waits for the first end's lock, and holds its own")
		}
	}
	locked.Unlock()
	require.NoError(t, <-paired)
}
