package loop

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/yield"
)

// ways runs a test over pairs that post in arrays, and over pairs that post directly.
func ways(t *testing.T, test func(t *testing.T, pair func() (a, b *side))) {
	for name, direct := range map[string]bool{"in arrays": false, "directly": true} {
		t.Run(name, func(t *testing.T) {
			test(t, func() (a, b *side) {
				a, b = pair(t, nil)
				a.direct, b.direct = direct, direct
				return a, b
			})
		})
	}
}

// A send and its receive meet at whatever point of the one the other is posted, and
// need no later kick.
func TestASendMeetsItsReceiveAtAnyPoint(t *testing.T) {
	ways(t, func(t *testing.T, pair func() (a, b *side)) {
		yield.Interleave(func() (first, second, check func()) {
			x, y := pair()
			return func() { x.post(send(1, x.sge(0, 8))) }, func() { y.recv(2, y.sge(0, 8)) }, func() {
				assert.Equal(t, []hw.WC{{ID: 1, Len: 8, Op: hw.OpSend}}, x.sends.all())
				assert.Equal(t, []hw.WC{{ID: 2, Len: 8, Op: hw.OpRecv}}, y.recvs.all())
			}
		})
		yield.Interleave(func() (first, second, check func()) {
			x, y := pair()
			return func() { y.recv(2, y.sge(0, 8)) }, func() { x.post(send(1, x.sge(0, 8))) }, func() {
				assert.Equal(t, []hw.WC{{ID: 1, Len: 8, Op: hw.OpSend}}, x.sends.all())
			}
		})
	})
}

// A post that finds the pipe held leaves its request to the holder.
func TestAPostAtAnyPointOfAnotherIsDone(t *testing.T) {
	ways(t, func(t *testing.T, pair func() (a, b *side)) {
		yield.Interleave(func() (first, second, check func()) {
			x, y := pair()
			y.recv(1, y.sge(0, 8))
			y.recv(2, y.sge(8, 8))
			return func() { x.post(send(1, x.sge(0, 8))) }, func() { x.post(send(2, x.sge(8, 8))) }, func() {
				assert.Len(t, x.sends.all(), 2)
				assert.Equal(t, []hw.WC{{ID: 1, Len: 8, Op: hw.OpRecv}, {ID: 2, Len: 8, Op: hw.OpRecv}}, y.recvs.all())
			}
		})
	})
}

// A send that was posted before Drain is done when the drain is reported, at whatever
// point of a receive both are posted.
func TestDrainAtAnyPointOfAReceiveWaitsForTheSendsBeforeIt(t *testing.T) {
	ways(t, func(t *testing.T, pair func() (a, b *side)) {
		yield.Interleave(func() (first, second, check func()) {
			x, y := pair()
			x.post(send(1, x.sge(0, 8))) // waits for its receive
			var done []hw.WC
			x.facts.onOff = func() { done = x.sends.all() }
			return func() { y.recv(1, y.sge(0, 8)) }, func() {
					y.recv(2, y.sge(8, 8))
					x.post(send(2, x.sge(8, 8)))
					x.qp.Drain()
				}, func() {
					y.recv(3, y.sge(0, 8)) // for the call of second that takes receive 1 itself
					assert.Contains(t, done, hw.WC{ID: 2, Len: 8, Op: hw.OpSend})
				}
		})
	})
}

// The same with a receive from a shared queue, which has the waiting pipes in its line.
func TestASendMeetsASharedReceiveAtAnyPoint(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		_, q, xs, ys := shared(t, 1, hw.SRQConfig{Depth: 8}, nil)
		return func() { xs[0].post(send(1)) }, func() { q.post(t, 7) }, func() {
			assert.Equal(t, []uint64{7}, taken(ys...))
			assert.Zero(t, q.claims)
		}
	})
	yield.Interleave(func() (first, second, check func()) {
		_, q, xs, ys := shared(t, 1, hw.SRQConfig{Depth: 8}, nil)
		return func() { q.post(t, 7) }, func() { xs[0].post(send(1)) }, func() {
			assert.Equal(t, []uint64{7}, taken(ys...))
		}
	})
}

// Once Deregister has returned, no goroutine reads the memory any more, at whatever
// point of a copy Deregister was called. On one processor Deregister has returned, or
// waits for the copy, when this goroutine goes on.
func TestDeregisterAtAnyPointOfACopy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ways(t, func(t *testing.T, pair func() (a, b *side)) {
		for _, size := range []int{8, 4096} {
			deregisterAtAnyPoint(t, size, pair)
		}
	})
}

func deregisterAtAnyPoint(t *testing.T, size int, pair func() (a, b *side)) {
	yield.Interleave(func() (first, second, check func()) {
		a, b := pair()
		mem := bytes.Repeat([]byte{1}, size)
		region, err := a.dev.Register(a.zone, mem, hw.LocalRead)
		require.NoError(t, err)
		source := hw.SGE{Addr: a.dev.(*device).Keys.Lookup(region.LKey()).Addr, Len: uint32(size), LKey: region.LKey()}
		done := make(chan struct{})
		return func() {
				a.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{source}, RKey: b.mr.RKey(), RemoteAddr: b.addr(0)})
			}, func() {
				go func() {
					defer close(done)
					if assert.NoError(t, region.Deregister()) {
						clear(mem)
						mem[0], mem[size-1] = 2, 2 // the program may write to it again
					}
				}()
				for range 50 {
					runtime.Gosched()
				}
			}, func() {
				<-done
				assert.NotContains(t, b.mem[:size], byte(2))
			}
	})
}

// An atomic changes its target only if it can report the old value: if the sink's
// region is deregistered at any point of the atomic, either the sink has the old value,
// or the atomic has failed and left the target unchanged.
func TestAnAtomicThatCantReportChangesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yield.Interleave(func() (first, second, check func()) {
		a, b := pair(t, nil)
		region, err := a.dev.Register(a.zone, make([]byte, 8), hw.LocalWrite)
		require.NoError(t, err)
		target := make([]byte, 8)
		far, err := b.dev.Register(b.zone, target, hw.RemoteAtomic)
		require.NoError(t, err)
		addr := b.dev.(*device).Keys.Lookup(far.LKey()).Addr
		old := hw.SGE{Addr: a.dev.(*device).Keys.Lookup(region.LKey()).Addr, Len: 8, LKey: region.LKey()}
		done := make(chan struct{})
		return func() {
				a.post(hw.SendWR{
					Op: hw.OpFetchAdd, Flags: hw.WRSignaled, SGL: []hw.SGE{old}, RKey: far.RKey(), RemoteAddr: addr, Operand: ^uint64(0),
				})
			}, func() {
				go func() {
					defer close(done)
					assert.NoError(t, region.Deregister())
				}()
				for range 50 {
					runtime.Gosched()
				}
			}, func() {
				<-done
				want := make([]byte, 8)
				if a.sends.wait(1)[0].Status == hw.StatusSuccess {
					want = bytes.Repeat([]byte{0xff}, 8)
				}
				assert.Equal(t, want, target)
				require.NoError(t, far.Deregister())
			}
	})
}

// Deregister waits for accesses that found the key alive, so the key is dead before the
// wait begins.
func TestNoLookUpFindsTheKeyWhileDeregisterWaits(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		a, b := pair(t, nil)
		region, err := a.dev.Register(a.zone, make([]byte, 8), hw.LocalRead)
		require.NoError(t, err)
		source := hw.SGE{Addr: a.dev.(*device).Keys.Lookup(region.LKey()).Addr, Len: 8, LKey: region.LKey()}
		return func() { require.NoError(t, region.Deregister()) }, func() {
				a.post(hw.SendWR{ID: 1, Op: hw.OpWrite, SGL: []hw.SGE{source}, RKey: b.mr.RKey(), RemoteAddr: b.addr(0)})
			}, func() {
				assert.Equal(t, []hw.WC{{ID: 1, Op: hw.OpWrite, Status: hw.StatusLocalProtection}}, a.sends.all())
			}
	})
}

// A queue ends after all that was posted before its Break, at whatever point of a flush
// the post and the Break come.
func TestAQueueEndsAtAnyPointOfAFlush(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		x, y := pair(t, nil)
		return func() { y.qp.Break(false) }, func() {
				x.post(send(1))
				x.recv(2)
				x.qp.Break(false)
			}, func() {
				assert.Equal(t, append(flushed(hw.OpSend, 1), endOf(sendEnd)), x.sends.all())
				assert.Equal(t, append(flushed(hw.OpRecv, 2), endOf(recvEnd)), x.recvs.all())
			}
	})
}
