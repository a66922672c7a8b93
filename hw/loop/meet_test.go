package loop

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/token"
	"godat/internal/yield"
)

// A receive is enqueued by a store that other processors may see late. A send that
// stalls at the same time finds the receive, or is kicked, since a locked instruction
// comes between RecvOne and Kick. The test holds the pipe and does what stall does.
func TestAStallingSendMeetsADirectReceiveOnTwoProcessors(t *testing.T) {
	a, b := pair(t, nil)
	b.direct = true
	p := a.qp.(*queuePair).out.Load()
	require.True(t, p.token.TakeOrKick())
	p.token.Token.Leave()
	dst := &p.exec.dst
	missed := 0
	stall := func() {
		p.token.Token.Resume()
		defer p.token.Token.Leave()
		p.attention.Or(stalled)
		found := dst.ready()
		yield.Until(func() bool { return b.received.Load() == 2 })
		b.received.Store(0)
		kicked := p.token.Load()&token.Kicked != 0
		if !found && !kicked {
			missed++
		}
		p.attention.And(^uint32(stalled))
		if kicked {
			assert.False(t, p.token.Release())
		}
		assert.True(t, dst.ready())
		dst.head++
		p.exec.giveBack()
	}
	receive := func() {
		b.recv(1, b.sge(0, 8))
		b.received.Add(1)
		yield.Until(func() bool { return b.received.Load() == 0 })
	}
	require.True(t, yield.Meet(30_000, 10*time.Second, stall, receive))
	assert.Zero(t, missed, "the send waits beside its receive")
	p.token.Token.Resume()
	p.run()
}

// PostOne releases the pipe by a store that other processors may see late. A goroutine that
// marks and kicks at the same time finds the pipe free, or LookAgain finds the mark, since a
// locked instruction comes between PostOne and LookAgain.
func TestAKickMeetsADirectRequestOnTwoProcessors(t *testing.T) {
	a, b := pair(t, nil)
	direct := a.qp.(hw.Direct)
	p := a.qp.(*queuePair).out.Load()
	sge := a.sge(0, 8)
	var swapped, posted atomic.Int32
	missed := 0
	post := func() {
		if direct.PostOne(hw.OpWrite, 0, 1, &sge, b.mr.RKey(), b.addr(0)) {
			swapped.Add(1)
			direct.LookAgain()
		}
		posted.Store(1)
		yield.Until(func() bool { return posted.Load() == 0 })
	}
	kick := func() {
		p.attention.Or(expired) // a holder that finds no send waiting clears it
		p.kick()
		yield.Until(func() bool { return posted.Load() == 1 })
		if p.attention.Load() != 0 {
			missed++
			p.kick()
		}
		posted.Store(0)
	}
	require.True(t, yield.Meet(30_000, 10*time.Second, post, kick))
	assert.Zero(t, missed, "nobody has looked")
}
