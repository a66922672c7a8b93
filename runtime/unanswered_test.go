package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// asker is an adapter whose endpoints ask for connections, without a time limit.
type asker struct {
	ia     *IA
	pz     *mem.PZ
	events *evd.Dispatcher
}

func newAsker(t *testing.T, name string) *asker {
	a := &asker{ia: open(t, name)}
	var err error
	a.pz, err = a.ia.NewPZ()
	require.NoError(t, err)
	a.events, err = a.ia.NewDispatcher(channel(64))
	require.NoError(t, err)
	return a
}

// ask makes an endpoint that connects to the service point at qual.
func (a *asker) ask(t *testing.T, to *IA, qual uint64) *ep.Endpoint {
	e, err := a.ia.NewEndpoint(ep.Config{PZ: a.pz, Conn: a.events})
	require.NoError(t, err)
	require.NoError(t, e.Connect(ep.ConnectConfig{Addr: to.Attr().Address, Qual: qual}))
	return e
}

func TestAnUntakenRequestIsRejectedWhenItsDispatcherIsClosed(t *testing.T) {
	const n = 40 // more than a channel holds
	for _, name := range []string{"loop", "iwarp"} {
		for _, cfg := range []evd.Config{
			{Mode: evd.ModeQueue, QLen: 4},
			{Mode: evd.ModeQueue, QLen: 4, Overcommit: true},
			{Mode: evd.ModeChannel, QLen: 4},
			{Mode: evd.ModeBatch, QLen: 4},
			{Mode: evd.ModeBatch, QLen: 64, BatchMin: 32},
		} {
			t.Run(fmt.Sprintf("%s %v %d", name, cfg.Mode, cfg.QLen), func(t *testing.T) {
				ia, peer := open(t, name), newAsker(t, name)
				d, err := ia.NewDispatcher(cfg)
				require.NoError(t, err)
				psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
				require.NoError(t, err)
				for range n {
					peer.ask(t, ia, psp.Qual())
				}
				waitForRequests(t, ia, n)
				require.NoError(t, psp.Close())
				require.NoError(t, d.Close())
				for range n {
					ev := <-peer.events.C()
					assert.Equal(t, event.PeerRejected, ev.Number, "%v", ev)
				}
				if d.C() == nil {
					return
				}
				for ev := range d.C() {
					requireCode(t, ep.RequestOf(ev).Reject(nil), hw.InvalidHandle, hw.HandleCR)
				}
			})
		}
	}
}

// waitForRequests waits until n requests came to the adapter.
func waitForRequests(t *testing.T, ia *IA, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := ia.Counters()
		return assert.NoError(t, err) && c.Requests == uint64(n)
	}, time.Minute, time.Millisecond)
}

func TestARequestInACallbacksQueueIsRejectedWhenItsDispatcherIsClosed(t *testing.T) {
	ia, peer := open(t, "loop"), newAsker(t, "loop")
	begun, on, closed := make(chan *ep.CR), make(chan struct{}), make(chan error)
	d, err := ia.NewDispatcher(evd.Config{Mode: evd.ModeCallback, QLen: 4, Callback: func(evs []event.Event) {
		begun <- ep.RequestOf(evs[0])
		<-on
	}})
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	require.NoError(t, err)
	peer.ask(t, ia, psp.Qual())
	taken := <-begun
	second := peer.ask(t, ia, psp.Qual())
	require.NoError(t, psp.Close())
	go func() { closed <- d.Close() }()
	ev := <-peer.events.C()
	assert.Equal(t, event.PeerRejected, ev.Number)
	assert.Same(t, second, ep.Of(ev))
	close(on)
	require.NoError(t, <-closed)
	require.NoError(t, taken.Reject(nil), "the callback had taken it")
}

func TestARequestThatTheProgramTookOutlastsItsDispatcher(t *testing.T) {
	ia, peer := open(t, "loop"), newAsker(t, "loop")
	d, err := ia.NewDispatcher(channel(4))
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	require.NoError(t, err)
	asked := peer.ask(t, ia, psp.Qual())
	cr := ep.RequestOf(<-d.C())
	require.NoError(t, psp.Close())
	require.NoError(t, d.Close())

	pz, err := ia.NewPZ()
	require.NoError(t, err)
	events, err := ia.NewDispatcher(channel(8))
	require.NoError(t, err)
	e, err := ia.NewEndpoint(ep.Config{PZ: pz, Conn: events})
	require.NoError(t, err)
	require.NoError(t, cr.Accept(e, nil))
	assert.Equal(t, event.Established, (<-events.C()).Number)
	ev := <-peer.events.C()
	assert.Equal(t, event.Established, ev.Number)
	assert.Same(t, asked, ep.Of(ev))
}

func TestARequestThatTheProgramHoldsIsRejectedWhenTheAdapterCloses(t *testing.T) {
	for _, name := range []string{"loop", "iwarp"} {
		t.Run(name, func(t *testing.T) {
			peer := newAsker(t, name)
			ia, err := Open(context.Background(), name)
			require.NoError(t, err)
			d, err := ia.NewDispatcher(channel(4))
			require.NoError(t, err)
			psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
			require.NoError(t, err)
			peer.ask(t, ia, psp.Qual())
			cr := ep.RequestOf(<-d.C())
			require.NoError(t, psp.Close())
			require.NoError(t, ia.Close())
			assert.Equal(t, event.PeerRejected, (<-peer.events.C()).Number)
			requireCode(t, cr.Reject(nil), hw.InvalidHandle, hw.HandleCR)
		})
	}
}
