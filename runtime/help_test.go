package runtime

import (
	"context"
	goruntime "runtime"
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

func open(t testing.TB, name string, opts ...Option) *IA {
	t.Helper()
	ia, err := Open(context.Background(), name, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return ia
}

func requireCode(t testing.TB, err error, typ hw.Type, sub hw.Subtype) {
	t.Helper()
	var code *hw.Error
	require.ErrorAs(t, err, &code)
	require.Equal(t, typ, code.Type, "%v", err)
	require.Equal(t, sub, code.Sub, "%v", err)
}

// pair is two connected endpoints of one adapter, and the dispatcher of both.
type pair struct {
	ia     *IA
	pz     *mem.PZ
	events *evd.Dispatcher
	psp    *ep.PSP
	a, b   *ep.Endpoint
	mem    *mem.LMR
}

func connect(t testing.TB, ia *IA, cfg evd.Config) *pair {
	t.Helper()
	p := &pair{ia: ia}
	var err error
	p.pz, err = ia.NewPZ()
	require.NoError(t, err)
	p.events, err = ia.NewDispatcher(cfg)
	require.NoError(t, err)
	p.mem, err = p.pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	ec := ep.Config{PZ: p.pz, Recv: p.events, Request: p.events, Conn: p.events}
	p.a, err = ia.NewEndpoint(ec)
	require.NoError(t, err)
	p.b, err = ia.NewEndpoint(ec)
	require.NoError(t, err)
	requests, err := ia.NewDispatcher(evd.Config{QLen: 4, Mode: evd.ModeChannel})
	require.NoError(t, err)
	p.psp, err = ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
	require.NoError(t, err)
	require.NoError(t, p.a.Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: p.psp.Qual()}))
	require.NoError(t, ep.RequestOf(<-requests.C()).Accept(p.b, nil))
	require.NoError(t, p.psp.Close())
	require.NoError(t, requests.Close())
	return p
}

// establish waits for both ends.
func (p *pair) establish(t testing.TB) {
	t.Helper()
	for range 2 {
		ev := p.next(t)
		require.Equal(t, event.Established, ev.Number, "%v", ev)
	}
}

// next takes an event, from a dispatcher of mode queue by Dequeue. It fails the test
// when a wake-up was lost.
func (p *pair) next(t testing.TB) event.Event {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	if p.events.Mode() == evd.ModeQueue {
		return p.dequeue(t, limit.C)
	}
	select {
	case ev := <-p.events.C():
		return ev
	case <-limit.C:
		assert.Fail(t, "a wake-up was lost")
		return event.Event{}
	}
}

func (p *pair) dequeue(t testing.TB, limit <-chan time.Time) event.Event {
	t.Helper()
	var buf [1]event.Event
	for {
		n, err := p.events.Dequeue(buf[:])
		if n == 1 || !assert.NoError(t, err) {
			return buf[0]
		}
		select {
		case <-limit:
			assert.Fail(t, "an event was lost")
			return event.Event{}
		default:
			goruntime.Gosched()
		}
	}
}

func channel(n int) evd.Config { return evd.Config{QLen: n, Mode: evd.ModeChannel} }

func polledQueue(n int) evd.Config { return evd.Config{QLen: n} }

// pollers are the ways to empty the queues of a polled device, each with the way in
// which programs take events there.
var pollers = map[string]struct {
	cfg    PollerConfig
	events func(int) evd.Config
}{
	"default":   {PollerConfig{}, channel},
	"pinned":    {PollerConfig{CPUs: allCPUs()}, channel},
	"consumers": {PollerConfig{}, polledQueue},
}
