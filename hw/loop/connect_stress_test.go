package loop

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// One side asks and may break the attempt at any time, the other accepts or rejects at
// any time: each side hears one outcome, and nothing after its queues have ended. The
// recorders and facts of both sides check the order.
func TestAnAttemptThatRacesWithItsAnswerHasOneOutcome(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			dev := open(t, uniqueName())
			a, b := newSide(t, dev, nil), newSide(t, dev, nil)
			ln, got := listen(t, dev, 0)
			for range short(500) {
				a.recv(1)
				b.recv(1)
				ask(t, a, ln, nil)
				r := (*got)[len(*got)-1]
				patience, haste, reject, orderly := rnd.IntN(8), rnd.IntN(8), rnd.IntN(4) == 0, rnd.IntN(2) == 0
				var wg sync.WaitGroup
				wg.Go(func() {
					idle(patience)
					a.qp.Break(orderly)
				})
				idle(haste)
				if reject {
					require.NoError(t, r.Reject(nil))
				} else {
					require.NoError(t, r.Accept(b.qp, nil))
				}
				wg.Wait()
				settle(t, a)
				if reject {
					assert.Contains(t, []hw.Reason{hw.ReasonNone, hw.ReasonPeerRejected}, a.facts.isRefused())
					b.qp.Break(true)
					settle(t, b)
					continue
				}
				requireEndOfAcceptor(t, b, orderly)
				b.qp.Break(false)
				settle(t, b)
			}
		})
	}
}

func idle(n int) {
	for range n {
		runtime.Gosched()
	}
}

// requireEndOfAcceptor checks what the accepting side is told when the initiator breaks.
func requireEndOfAcceptor(t *testing.T, b *side, orderly bool) {
	t.Helper()
	if b.facts.established() == nil {
		assert.Equal(t, hw.ReasonUnreachable, b.facts.isRefused())
		return
	}
	want := hw.ReasonBroken
	if orderly {
		want = hw.ReasonPeer
	}
	spinUntil(t, func() bool { return b.facts.isDown() != 0 })
	assert.Equal(t, want, b.facts.isDown())
}

// settle waits for the ends of both queues, and begins a new life.
func settle(t *testing.T, s *side) {
	t.Helper()
	spinUntil(t, s.ended)
	assert.Equal(t, []hw.WC{endOf(sendEnd)}, s.sends.all())
	assert.Equal(t, append(flushed(hw.OpRecv, 1), endOf(recvEnd)), s.recvs.all())
	s.reset()
}
