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

// A goroutine that kicks the pipe while its owner posts directly has the pipe, or the owner
// finds the mark that it leaves, since the owner looks again behind a locked instruction.
func TestAKickMeetsADirectRequestOnTwoProcessors(t *testing.T) {
	a, b := ownedPair(t)
	direct := a.qp.(hw.Direct)
	p := a.qp.(*queuePair).out.Load()
	sge := a.sge(0, 8)
	var posted atomic.Int32
	missed := 0
	post := func() {
		w, ok := a.box.TryTake()
		assert.True(t, ok)
		direct.PostOne(hw.OpWrite, 0, 1, &sge, b.mr.RKey(), b.addr(0))
		assert.True(t, a.box.ReleaseIf(w))
		direct.LookAgain()
		posted.Store(1)
		yield.Until(func() bool { return posted.Load() == 0 })
	}
	kick := func() {
		p.attention.Or(expired) // the pipe's user clears it when no send waits
		p.kick()
		yield.Until(func() bool { return posted.Load() == 1 })
		if p.attention.Load()&^absent != 0 {
			missed++
			p.kick()
		}
		posted.Store(0)
	}
	require.True(t, yield.Meet(30_000, 10*time.Second, post, kick))
	assert.Zero(t, missed, "nobody has looked")
}

// One goroutine at a time has a pipe: one that kicks it and its owner, which posts directly,
// never both. A direct request and the end of a send that has waited complete to the same sink.
func TestAnOwnerAndAKickNeverHaveAPipeTogether(t *testing.T) {
	a, b := ownedPair(t)
	p := a.qp.(*queuePair).out.Load()
	var inside, both atomic.Int32
	enter := func([]hw.WC) {
		if inside.Add(1) != 1 {
			both.Add(1)
		}
		for range 20 {
			yield.Point()
		}
		inside.Add(-1)
	}
	a.sends.hook, b.recvs.hook = enter, nil
	var turn atomic.Int32
	sge := a.sge(0, 8)
	post := func() {
		a.post(send(1, sge)) // it waits, or takes the receive
		a.post(hw.SendWR{ID: 2, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{sge}, RKey: b.mr.RKey(), RemoteAddr: b.addr(0)})
		turn.Add(1)
		yield.Until(func() bool { return turn.Load() != 1 })
	}
	receive := func() {
		b.recv(3, b.sge(8, 8))
		yield.Until(func() bool { return turn.Load() == 1 })
		if len(a.sends.all()) != 2 {
			t.Error("a request is lost")
		}
		a.sends.forget()
		b.recvs.forget()
		turn.Store(0)
	}
	require.True(t, yield.Meet(20_000, 20*time.Second, post, receive))
	assert.Zero(t, both.Load())
	assert.Zero(t, p.attention.Load()&^absent)
}
