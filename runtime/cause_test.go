package runtime

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// causeRig is an adapter with one dispatcher, a log, and a service point whose requests
// are accepted.
type causeRig struct {
	t      *testing.T
	ia     *IA
	pz     *mem.PZ
	events *evd.Dispatcher
	logs   *observer.ObservedLogs
	point  *ep.PSP
}

func newCauseRig(t *testing.T, provider string) *causeRig {
	core, logs := observer.New(zap.WarnLevel)
	ia := open(t, provider, withLogger(zap.New(core)))
	r := &causeRig{t: t, ia: ia, logs: logs}
	var err error
	r.pz, err = ia.NewPZ()
	require.NoError(t, err)
	r.events, err = ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 256})
	require.NoError(t, err)
	r.point, err = ia.NewPSP(ep.PSPConfig{Dispatcher: r.events})
	require.NoError(t, err)
	return r
}

func (r *causeRig) endpoint() *ep.Endpoint {
	e, err := r.ia.NewEndpoint(ep.Config{PZ: r.pz, Recv: r.events, Request: r.events, Conn: r.events})
	require.NoError(r.t, err)
	return e
}

func (r *causeRig) next() event.Event {
	select {
	case ev := <-r.events.C():
		return ev
	case <-time.After(time.Minute):
		r.t.Fatal("no event")
		return event.Event{}
	}
}

// until takes events up to the first that has one of these numbers.
func (r *causeRig) until(numbers ...event.Number) event.Event {
	for {
		ev := r.next()
		for _, n := range numbers {
			if ev.Number == n {
				return ev
			}
		}
	}
}

func (r *causeRig) pair() (a, b *ep.Endpoint) {
	a, b = r.endpoint(), r.endpoint()
	require.NoError(r.t, a.Connect(ep.ConnectConfig{Addr: r.address(), Qual: r.point.Qual()}))
	require.NoError(r.t, ep.RequestOf(r.until(event.ConnectionRequest)).Accept(b, nil))
	r.until(event.Established)
	r.until(event.Established)
	return a, b
}

func (r *causeRig) address() string {
	if r.ia.Attr().Provider == "iwarp" {
		return "127.0.0.1"
	}
	return r.ia.Attr().Address
}

func eachCause(t *testing.T, test func(t *testing.T, r *causeRig)) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) { test(t, newCauseRig(t, provider)) })
	}
}

func TestTheEventOfARefusedConnectionNamesThePeerAndTheCause(t *testing.T) {
	eachCause(t, func(t *testing.T, r *causeRig) {
		qual := r.point.Qual()
		require.NoError(t, r.point.Close())
		e := r.endpoint()
		m, err := r.pz.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		require.NoError(t, e.PostRecv(1, 0, m.Segment(0, 64)))
		require.NoError(t, e.Connect(ep.ConnectConfig{Addr: r.address(), Qual: qual}))
		for _, want := range []event.Number{event.DTOCompletion, event.NonPeerRejected} {
			ev := r.next()
			require.Equal(t, want, ev.Number)
			var cause *hw.Cause
			require.ErrorAs(t, ev.Err(), &cause)
			assert.Equal(t, hw.SideLocal, cause.Found, "nobody is there to find it")
			require.NotNil(t, cause.Remote)
			assert.Contains(t, ev.Err().Error(), fmt.Sprintf(":%d", qual))
		}
	})
}

func TestABrokenConnectionSaysWhyOnBothSidesAndInTheLog(t *testing.T) {
	eachCause(t, func(t *testing.T, r *causeRig) {
		a, b := r.pair()
		m, err := r.pz.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		require.NoError(t, b.PostRecv(1, 0, m.Segment(0, 8)))
		require.NoError(t, a.PostSend(2, 0, m.Segment(0, 64)))
		for range 2 {
			ev := r.until(event.Broken)
			require.ErrorIs(t, ev.Err(), event.Error(event.Broken))
			c := ev.Cause()
			require.NotNil(t, c)
			assert.NotNil(t, c.Local)
			assert.NotNil(t, c.Remote)
			want := hw.SidePeer
			if ep.Of(ev) == b {
				want = hw.SideLocal
			}
			assert.Equal(t, want, c.Found, "%v", c)
			assert.Contains(t, ev.Err().Error(), c.Error())
		}
		require.Eventually(t, func() bool { return r.logs.Len() == 2 }, time.Minute, time.Millisecond)
		for _, line := range r.logs.All() {
			assert.Equal(t, "connection broke", line.Message)
			assert.Contains(t, line.ContextMap()["error"], "found ")
		}
	})
}

func TestAnAttemptThatAListenerDropsIsLogged(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	ia := open(t, "iwarp:127.0.0.1", withLogger(zap.New(core)), WithParams(map[string]string{"halfopen": "1"}))
	ln, err := ia.Listen(t.Context(), "", ConnConfig{})
	require.NoError(t, err)
	for range 2 { // the second silent connection takes the place of the first
		c, err := net.Dial("tcp", ln.Addr())
		require.NoError(t, err)
		defer c.Close()
	}
	require.Eventually(t, func() bool { return logs.Len() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, "connection attempt dropped", logs.All()[0].Message)
	assert.Contains(t, logs.All()[0].ContextMap()["error"], "halfopen")
}

func TestAnOrderlyEndNamesTheSideThatEndedItAndIsNotLogged(t *testing.T) {
	eachCause(t, func(t *testing.T, r *causeRig) {
		a, _ := r.pair()
		require.NoError(t, a.Disconnect(ep.Abrupt))
		for range 2 {
			ev := r.until(event.Disconnected)
			require.NoError(t, ev.Err())
			want := hw.SidePeer
			if ep.Of(ev) == a {
				want = hw.SideLocal
			}
			require.NotNil(t, ev.Cause())
			assert.Equal(t, want, ev.Cause().Found)
		}
		assert.Zero(t, r.logs.Len())
	})
}

func TestAConnectThatTimesOutSaysSo(t *testing.T) {
	eachCause(t, func(t *testing.T, r *causeRig) {
		a := r.endpoint()
		require.NoError(t, a.Connect(ep.ConnectConfig{Addr: r.address(), Qual: r.point.Qual(), Timeout: 20 * time.Millisecond}))
		ev := r.until(event.TimedOut)
		var cause *hw.Cause
		require.ErrorAs(t, ev.Err(), &cause)
		require.ErrorIs(t, cause, hw.ErrTimeout)
		assert.Equal(t, hw.SideLocal, cause.Found)
		assert.NotNil(t, cause.Remote)
	})
}

func TestTheLogOfBrokenConnectionsIsBounded(t *testing.T) {
	var b breakLog
	now := time.Now()
	for range breaksPerSecond {
		_, ok := b.admit(now)
		require.True(t, ok)
	}
	for range 5 {
		_, ok := b.admit(now.Add(time.Second / 2))
		require.False(t, ok)
	}
	skipped, ok := b.admit(now.Add(time.Second))
	assert.True(t, ok)
	assert.Equal(t, 5, skipped)
	skipped, _ = b.admit(now.Add(time.Second))
	assert.Zero(t, skipped)
}
