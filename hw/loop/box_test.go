package loop

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/token"
	"godat/internal/yield"
)

// box is what an endpoint has for the calls on its queue pair: the holder of its token makes
// them one at a time, and looks again when it has released the token (hw.Direct's Own).
// A closed one passes them on.
type box struct {
	token.Token
	open bool

	mu   sync.Mutex
	left []func()
}

func (b *box) call(qp hw.QP, f func()) {
	if !b.open {
		f()
		return
	}
	b.mu.Lock()
	b.left = append(b.left, f)
	b.mu.Unlock()
	yield.Point()
	if !b.TakeOrKick() {
		return
	}
	for {
		b.mu.Lock()
		left := b.left
		b.left = nil
		b.mu.Unlock()
		for _, f := range left {
			f()
		}
		if b.Release() {
			qp.(hw.Direct).LookAgain()
			return
		}
	}
}

// own makes the side the owner of its queue pair that Own tells of.
func (s *side) own() {
	s.box.open, s.direct = true, true
	s.qp.(hw.Direct).Own(s.box.Word())
}

// ownedPair is a pair of sides that post directly, without the pipe's token.
func ownedPair(t testing.TB) (a, b *side) {
	dev := open(t, uniqueName())
	a, b = newSide(t, dev, nil), newSide(t, dev, nil)
	a.own()
	b.own()
	connect(t, a, b)
	return a, b
}

// A Break of the peer at whatever point of a direct request waits until the request is
// done, and is not forgotten.
func TestABreakAtAnyPointOfADirectRequest(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		x, y := ownedPair(t)
		y.recv(1, y.sge(0, 8))
		return func() { x.post(send(2, x.sge(0, 8))) }, func() { y.box.call(y.qp, func() { y.qp.Break(true) }) }, func() {
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
		x, y := ownedPair(t)
		end := func(s *side) func() {
			return func() { s.box.call(s.qp, func() { s.qp.Break(true) }) }
		}
		return end(x), end(y), func() {
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
		x, y := ownedPair(t)
		x.post(send(1, x.sge(0, 8)))
		x.post(send(2, x.sge(0, 8)))
		receives := []hw.RecvWR{{ID: 3, SGL: []hw.SGE{y.sge(0, 8)}}, {ID: 4, SGL: []hw.SGE{y.sge(8, 8)}}}
		receive := func() {
			_, err := y.qp.PostRecv(receives)
			require.NoError(t, err)
		}
		write := hw.SendWR{ID: 5, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(0, 8)}, RKey: y.mr.RKey(), RemoteAddr: y.addr(0)}
		return func() { y.box.call(y.qp, receive) }, func() { x.post(write) }, func() {
			var ids []uint64
			for _, wc := range x.sends.all() {
				ids = append(ids, wc.ID)
			}
			assert.Equal(t, []uint64{1, 2, 5}, ids)
		}
	})
}

// An endpoint that posts without a pause may have its token held at each moment at which
// Deregister looks. Deregister waits for one of its calls only, of whatever kind.
func TestDeregisterWaitsForOneCallOfAnOwner(t *testing.T) {
	a, b := ownedPair(t)
	mem := make([]byte, 8)
	for name, call := range map[string]func(){
		"a direct request": func() { a.postNow([]hw.SendWR{wr(hw.OpWrite, a, 0, 8, b.mr.RKey(), b.addr(0))}) },
		"an array":         func() { a.postNow([]hw.SendWR{wr(hw.OpWrite, a, 0, 0, b.mr.RKey(), b.addr(0))}) },
		"receives":         func() { _, _ = a.qp.PostRecv([]hw.RecvWR{{}}) }, // which does not fit at last
	} {
		region, err := a.dev.Register(a.zone, mem, all)
		require.NoError(t, err, name)
		require.True(t, a.box.TakeOrKick())
		a.qp.(*queuePair).out.Load().enter() // as its first request does
		done := make(chan error)
		go func() { done <- region.Deregister() }()
		for over := false; !over; {
			call()
			a.sends.forget()
			select {
			case err := <-done:
				require.NoError(t, err, name)
				over = true
			default:
				runtime.Gosched()
			}
		}
		require.True(t, a.box.Release())
	}
}

// A queue pair that is reset has another pipe out, or none, and its owner looks there. What
// is left to do in the old pipe does not wait for the owner.
func TestAnOldPipeDoesNotWaitForTheOwnerOfANewConnection(t *testing.T) {
	x, y := ownedPair(t)
	x.box.call(x.qp, func() { x.qp.Break(true) })
	x.box.call(x.qp, x.reset)
	require.True(t, x.box.TakeOrKick())
	y.box.call(y.qp, func() { y.qp.Break(true) })
	assert.True(t, y.sends.ended())
	assert.True(t, y.recvs.ended())
	require.True(t, x.box.Release())
}

// A send with invalidation that waited for its receive is executed in the post of the
// receive, behind the owner's call: no worker has to wait until the owner is not at work.
func TestAReceiveExecutesAnInvalidationInItsCall(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	x, y := ownedPair(t)
	region, err := y.dev.Register(y.zone, make([]byte, 8), all)
	require.NoError(t, err)
	x.recv(3, x.sge(0, 8))
	y.post(send(4, y.sge(0, 8))) // an invalidation looks at a pipe that was at work
	x.post(hw.SendWR{ID: 1, Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(0, 8)}, Imm: region.RKey()})
	y.box.call(y.qp, func() {
		_, err := y.qp.PostRecv([]hw.RecvWR{{ID: 2, SGL: []hw.SGE{y.sge(0, 8)}}})
		assert.NoError(t, err)
	})
	assert.Len(t, x.sends.all(), 1)
	require.NoError(t, region.Deregister())
}
