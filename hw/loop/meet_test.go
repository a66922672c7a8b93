package loop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/token"
	"godat/internal/yield"
)

// A receive is enqueued by a store that other processors may see late. A send that
// stalls at the same time finds the receive, or is kicked, since a locked instruction
// comes between RecvRun and Kick. The test holds the pipe and does what stall does.
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
