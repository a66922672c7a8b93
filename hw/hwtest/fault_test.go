package hwtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/fault"
	"godat/hw/loop"
	"godat/hw/sim"
)

// inners are the providers that package fault wraps in the tests: one that delivers
// completions to sinks, and one that is polled.
var inners = []struct {
	name string
	make func() hw.Provider
}{
	{"loop", func() hw.Provider { return loop.New() }},
	{"sim", func() hw.Provider { return sim.New(sim.Config{Seed: 1}) }},
}

// overFault runs a test over each inner provider, with the given faults.
func overFault(t *testing.T, cfg fault.Config, test func(t *testing.T, r *rig, f *fault.Provider)) {
	t.Helper()
	t.Parallel()
	for _, in := range inners {
		t.Run("over "+in.name, func(t *testing.T) {
			t.Parallel()
			inner := in.make()
			if s, ok := inner.(*sim.Provider); ok {
				t.Cleanup(func() { assert.Empty(t, s.Violations(), "the wrapper keeps to the contract") })
			}
			f := fault.Wrap(inner, cfg)
			test(t, newRig(t, Config{Provider: f, Devices: [2]string{"one", "two"}}.withDefaults()), f)
		})
	}
}

func TestAFailedOperationFailsInItsPlace(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.FailSend: {Nth: 3}}, Status: hw.StatusBadResponse}
	overFault(t, cfg, func(t *testing.T, r *rig, f *fault.Provider) {
		a, b := r.pair()
		for range 5 {
			b.recv()
		}
		a.post(sendOf(), hw.SendWR{Op: hw.OpSend}, hw.SendWR{Op: hw.OpSend}, sendOf(), hw.SendWR{Op: hw.OpSend})
		r.broken(a, b)
		a.post(sendOf())
		over(a, b)
		assert.Equal(t, []hw.Status{
			hw.StatusSuccess, hw.StatusSuccess, hw.StatusBadResponse, hw.StatusFlushed, hw.StatusFlushed, hw.StatusFlushed,
		}, a.statuses(sendQueue))
		assert.Equal(t, []hw.Status{
			hw.StatusSuccess, hw.StatusSuccess, hw.StatusFlushed, hw.StatusFlushed, hw.StatusFlushed,
		}, b.statuses(recvQueue))
		assert.Equal(t, 1, f.Fired(fault.FailSend))
	})
}

func TestAFailedReceiveFailsWhenItsMessageComes(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.FailRecv: {Nth: 2}}, Status: hw.StatusPartialPacket}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		a, b := r.pair()
		src, dst := r.a.mem(8, hw.LocalRead), r.b.mem(8, hw.LocalWrite)
		for range 3 {
			b.recv(dst.all())
		}
		a.post(sendOf(src.all()), sendOf(src.all()))
		r.broken(a, b)
		over(a, b)
		assert.Equal(t, []hw.Status{hw.StatusSuccess, hw.StatusPartialPacket, hw.StatusFlushed}, b.statuses(recvQueue))
		assert.Equal(t, []hw.Status{hw.StatusSuccess, hw.StatusRemoteResponder}, a.statuses(sendQueue))
	})
}

func TestADelayedCompletionDelaysTheCompletionsBehindIt(t *testing.T) {
	const delay = 20 * time.Millisecond
	cfg := fault.Config{On: fault.Triggers{fault.DelaySend: {Nth: 2}}, Delay: delay}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		a, b := r.pair()
		before := time.Now()
		for range 3 {
			b.recv()
		}
		a.post(sendOf(), sendOf(), sendOf())
		b.received(2)
		a.sent(1)
		assert.GreaterOrEqual(t, time.Since(before), delay)
		a.sent(2)
		assert.Equal(t, hw.ReasonNone, a.down, "late is not broken")
		roundTrip(r, a, b)
	})
}

func TestABrokenConnectionIsFlushedOnBothSides(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.BreakConn: {Nth: 2}}}
	overFault(t, cfg, func(t *testing.T, r *rig, f *fault.Provider) {
		a, b := r.pair(notReady(hourLong))
		a.recv()
		b.recv()
		in := b.recv()
		a.post(sendOf())
		a.sent(0)
		a.post(sendOf(), sendOf(), sendOf()) // the first of these breaks the connection
		r.broken(a, b)
		late, lateIn := a.post(sendOf()), a.recv()
		a.mu.Lock()
		assert.False(t, a.overLocked(), "Break has not been called")
		a.mu.Unlock()
		assert.ErrorIs(t, a.qp.Reset(), hw.ErrInvalidState)
		assert.ErrorIs(t, a.qp.Close(), hw.ErrInvalidState)
		over(a, b)
		assert.Equal(t, hw.StatusFlushed, a.statuses(sendQueue)[3])
		assert.Equal(t, hw.StatusFlushed, a.statuses(sendQueue)[late])
		assert.Equal(t, hw.StatusFlushed, a.statuses(recvQueue)[lateIn])
		assert.Contains(t, []hw.Status{hw.StatusSuccess, hw.StatusFlushed}, b.statuses(recvQueue)[in])
		assert.Equal(t, 1, f.Fired(fault.BreakConn))

		a.reset()
		c := r.b.newEnd()
		r.join(a, c)
		roundTrip(r, a, c)
	})
}

func TestALostPeerIsNoticedWithinTheBound(t *testing.T) {
	const bound = 100 * time.Millisecond
	cfg := fault.Config{On: fault.Triggers{fault.LosePeer: {Nth: 2}}, Bound: bound}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		a, b := r.pair()
		for range 4 {
			b.recv()
		}
		a.recv()
		before := time.Now()
		a.post(sendOf(), sendOf())
		a.post(sendOf())
		r.broken(a, b)
		assert.GreaterOrEqual(t, time.Since(before), bound)
		a.post(sendOf())
		over(a, b)
		assert.Equal(t, []hw.Status{hw.StatusSuccess, hw.StatusTransport, hw.StatusFlushed, hw.StatusFlushed}, a.statuses(sendQueue))
		assert.Equal(t, []hw.Status{hw.StatusSuccess, hw.StatusFlushed, hw.StatusFlushed, hw.StatusFlushed}, b.statuses(recvQueue))
		assert.Equal(t, []hw.Status{hw.StatusFlushed}, a.statuses(recvQueue))
	})
}

func TestALostPeerDoesNotDisturbBreakOrDrain(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.LosePeer: {Every: 1}}, Bound: 100 * time.Millisecond}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		a, _ := r.pair()
		a.post(sendOf())
		a.over() // Break comes before Config.Bound has passed
		assert.Equal(t, []hw.Status{hw.StatusFlushed}, a.statuses(sendQueue))
		c, d := r.pair()
		c.post(sendOf())
		c.drain()
		assert.Equal(t, hw.ReasonBroken, c.awaitDown(), "what was posted did not run to completion")
		r.broken(d)
		e, f := r.pair()
		e.post(sendOf())
		f.over() // the peer breaks the connection first
		e.awaitDown()
		e.over()
		assert.Equal(t, []hw.Status{hw.StatusFlushed}, e.statuses(sendQueue))
	})
}

func TestALostPeerIsForgottenInTheNextLife(t *testing.T) {
	const bound = 20 * time.Millisecond
	cfg := fault.Config{On: fault.Triggers{fault.LosePeer: {Nth: 1}}, Bound: bound}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		a, b := r.pair()
		a.post(sendOf())
		over(a, b)
		a.reset()
		b.reset()
		r.join(a, b)
		assert.False(t, waitFor(&a.cond, 2*bound, func() bool { return a.down != hw.ReasonNone }))
		roundTrip(r, a, b)
	})
}

// slowDown is an owner whose Down closes begun and then blocks until gate is closed.
type slowDown struct {
	hw.Facts
	begun, gate chan struct{}
}

func (f slowDown) Down(why hw.Reason, cause *hw.Cause) {
	close(f.begun)
	<-f.gate
	f.Facts.Down(why, cause)
}

func TestNoQueueEndsBeforeDownHasReturned(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.LosePeer: {Nth: 1}}, Bound: time.Millisecond}
	overFault(t, cfg, func(t *testing.T, r *rig, f *fault.Provider) {
		begun, gate := make(chan struct{}), make(chan struct{})
		a, b := r.a.newEnd(func(c *hw.QPConfig) { c.Facts = slowDown{c.Facts, begun, gate} }), r.b.newEnd()
		r.join(a, b)
		a.post(sendOf())
		<-begun
		a.breakNow(false)
		assert.False(t, waitFor(&a.cond, 10*time.Millisecond, func() bool { return a.books[sendQueue].ended || a.books[recvQueue].ended }))
		close(gate)
		a.awaitEnd()
		assert.Equal(t, hw.ReasonBroken, a.awaitDown())
	})
}

func TestFailedCallsDoNothing(t *testing.T) {
	cfg := fault.Config{On: fault.Triggers{fault.FailRegister: {Nth: 1}, fault.FailNewQP: {Nth: 1}, fault.FailConnect: {Nth: 1}}}
	overFault(t, cfg, func(t *testing.T, r *rig, _ *fault.Provider) {
		_, err := r.a.dev.Register(r.a.zone, make([]byte, 8), hw.AllPrivileges)
		require.ErrorIs(t, err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceMemoryRegion})
		_, err = r.a.dev.NewQP(hw.QPConfig{})
		require.ErrorIs(t, err, hw.ErrInsufficientResources)
		a, b := r.a.newEnd(), r.b.newEnd()
		l := r.b.listen(hw.ListenConfig{})
		require.ErrorIs(t, a.tryConnect(hw.ConnectConfig{Addr: r.b.attr.Address, Qual: l.Qual()}), hw.ErrInsufficientResources)
		r.join(a, b)
		roundTrip(r, a, b)
	})
}

// storm runs connections under the configured faults, and returns how all their requests
// ended. The books of each queue pair must balance whatever the faults do.
func storm(r *rig) (ends []string) {
	for i := range 30 {
		a, b := r.pair(depth(64, 64))
		src, dst := r.a.mem(64, hw.AllPrivileges), r.b.mem(64, hw.AllPrivileges)
		for j := range 20 {
			_, _, _ = b.tryRecv([]hw.SGE{dst.all()})
			wrs := []hw.SendWR{writeTo(dst, 0, src.all()), readFrom(dst, 0, src.all()), sendOf(src.all())}
			wrs[j%3].Flags &^= hw.WRSignaled
			_, _, _ = a.tryPost(wrs...)
		}
		a.breakNow(i%2 == 0)
		a.awaitEnd()
		b.over()
		ends = append(ends, fmt.Sprint(slices.IndexFunc(a.statuses(sendQueue), func(s hw.Status) bool { return s == hw.StatusRemoteResponder })))
	}
	return ends
}

func TestTheContractHoldsUnderAllFaultsAtOnce(t *testing.T) {
	cfg := fault.Config{
		Seed: 7, Status: hw.StatusRemoteResponder, Delay: 50 * time.Microsecond, Bound: 100 * time.Microsecond,
		On: fault.Triggers{fault.FailSend: {Every: 100}, fault.FailRecv: {Every: 80}, fault.DelaySend: {Every: 50}, fault.BreakConn: {Every: 150}, fault.LosePeer: {Every: 150}},
	}
	overFault(t, cfg, func(t *testing.T, r *rig, f *fault.Provider) {
		storm(r)
		for _, k := range []fault.Kind{fault.FailSend, fault.FailRecv, fault.DelaySend, fault.BreakConn, fault.LosePeer} {
			assert.Positive(t, f.Fired(k), "%v", k)
		}
	})
}

func TestTheSeedPicksTheOperationsThatFail(t *testing.T) {
	t.Parallel()
	// On loop all requests before the failed one have run, so the statuses show which failed.
	story := func(seed uint64) []string {
		f := fault.Wrap(loop.New(), fault.Config{Seed: seed, Status: hw.StatusRemoteResponder, On: fault.Triggers{fault.FailSend: {Every: 30}}})
		return storm(newRig(t, Config{Provider: f, Devices: [2]string{"one", "two"}}.withDefaults()))
	}
	one := story(1)
	assert.Equal(t, one, story(1))
	assert.NotEqual(t, one, story(2))
}
