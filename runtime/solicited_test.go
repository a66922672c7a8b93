package runtime

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
)

// Receives that are not solicited wake no poller and no waiter. A Dequeue finds them.
func TestUnsolicitedReceivesWaitForASolicitedOne(t *testing.T) {
	forSolicited(t, func(t *testing.T, p *pair, b *ep.Endpoint, recvs *evd.Dispatcher) {
		a := p.connectTo(t, b)
		state, err := recvs.Query()
		require.NoError(t, err)
		assert.EqualValues(t, 0x20, state.State.Config(), "CONFIG_SOLICITED")

		send := func(first, n uint64, flags hw.Flags) {
			for i := range n {
				require.NoError(t, b.PostRecv(first+i, hw.Default, p.mem.Segment(0, 8)))
				require.NoError(t, a.PostSend(first+i, flags, p.mem.Segment(8, 8)))
			}
			for range n {
				assert.NoError(t, p.next(t).Err())
			}
		}
		woken := make(chan int)
		go func() {
			_, nmore, err := recvs.Wait(context.Background(), 1)
			assert.NoError(t, err)
			woken <- nmore
		}()
		require.Eventually(t, func() bool { _, err := recvs.Dequeue(nil); return err != nil }, time.Minute, time.Millisecond)
		send(0, 3, hw.Default)
		send(3, 1, hw.SolicitedWait)
		assert.Equal(t, 3, <-woken, "an earlier one woke the waiter")
		buf := make([]event.Event, 8)
		n, err := recvs.Dequeue(buf)
		require.NoError(t, err)
		require.Equal(t, 3, n)

		send(4, 3, hw.Default)
		n = 0
		require.Eventually(t, func() bool {
			k, err := recvs.Dequeue(buf[n:])
			n += k
			return err == nil && n == 3
		}, time.Minute, time.Millisecond, "who looks finds them")
		for i, ev := range buf[:3] {
			assert.EqualValues(t, 4+i, ev.Cookie)
		}
	})
}

// Whether the device wakes the poller for every receive is fixed when its queue is
// made, so an endpoint whose attribute changes gets another queue.
func TestModifyChangesWhatWakesTheWaiter(t *testing.T) {
	forSolicited(t, func(t *testing.T, p *pair, b *ep.Endpoint, recvs *evd.Dispatcher) {
		require.NoError(t, b.Modify(ep.Param{}, "RecvFlags"))
		a := p.connectTo(t, b)
		require.NoError(t, b.PostRecv(1, hw.Default, p.mem.Segment(0, 8)))
		woken := make(chan event.Event, 1)
		go func() {
			ev, _, err := recvs.Wait(context.Background(), 1)
			assert.NoError(t, err)
			woken <- ev
		}()
		require.Eventually(t, func() bool {
			c, err := recvs.Counters()
			return err == nil && c.Sleeps == 1
		}, time.Minute, time.Millisecond)
		if engine := p.ia.polling; engine != nil { // the waiter's poll is over: now the device must wake the poller
			require.Eventually(t, engine.Asleep, time.Minute, time.Millisecond)
		}
		// Suppressed, because its own completion would wake the poller.
		require.NoError(t, a.PostSend(2, hw.Suppress, p.mem.Segment(8, 8)))
		select {
		case ev := <-woken:
			assert.EqualValues(t, 1, ev.Cookie)
		case <-time.After(30 * time.Second):
			require.Fail(t, "nobody was woken")
		}
	})
}

// forSolicited runs a test on a device without a poller and on polled devices. The
// receives of endpoint b go to recvs, and wake its waiter when they are solicited.
func forSolicited(t *testing.T, test func(t *testing.T, p *pair, b *ep.Endpoint, recvs *evd.Dispatcher)) {
	for name, opts := range map[string][]Option{
		"loop": nil,
		"sim":  {WithProvider(sim.New(sim.Config{})), WithPoller(PollerConfig{SpinRounds: -1})},
		"sim: pinned": {
			WithProvider(sim.New(sim.Config{})), WithPoller(PollerConfig{SpinRounds: -1, CPUs: allCPUs()}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			device, _, _ := strings.Cut(name, ":")
			ia := open(t, device, opts...)
			p := connect(t, ia, channel(64))
			p.establish(t)
			recvs, err := ia.NewDispatcher(evd.Config{QLen: 8})
			require.NoError(t, err)
			b, err := ia.NewEndpoint(ep.Config{
				PZ: p.pz, Recv: recvs, Conn: p.events, Attr: &ep.Attr{RecvFlags: hw.SolicitedWait},
			})
			require.NoError(t, err)
			test(t, p, b, recvs)
		})
	}
}

// connectTo connects a new endpoint to b.
func (p *pair) connectTo(t *testing.T, b *ep.Endpoint) *ep.Endpoint {
	t.Helper()
	a, err := p.ia.NewEndpoint(ep.Config{PZ: p.pz, Recv: p.events, Request: p.events, Conn: p.events})
	require.NoError(t, err)
	requests, err := p.ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeChannel})
	require.NoError(t, err)
	psp, err := p.ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
	require.NoError(t, err)
	require.NoError(t, a.Connect(ep.ConnectConfig{Addr: p.ia.Attr().Address, Qual: psp.Qual()}))
	require.NoError(t, ep.RequestOf(<-requests.C()).Accept(b, nil))
	p.establish(t)
	return a
}
