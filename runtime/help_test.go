package runtime

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
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
	pz     *PZ
	events *Dispatcher
	psp    *PSP
	a, b   *Endpoint
	mem    *LMR
}

func connect(t testing.TB, ia *IA, cfg DispatcherConfig) *pair {
	t.Helper()
	p := &pair{ia: ia}
	var err error
	p.pz, err = ia.NewPZ()
	require.NoError(t, err)
	p.events, err = ia.NewDispatcher(cfg)
	require.NoError(t, err)
	p.mem, err = p.pz.Alloc(4096, AllPrivileges)
	require.NoError(t, err)
	ec := EndpointConfig{PZ: p.pz, Recv: p.events, Request: p.events, Conn: p.events}
	p.a, err = ia.NewEndpoint(ec)
	require.NoError(t, err)
	p.b, err = ia.NewEndpoint(ec)
	require.NoError(t, err)
	requests, err := ia.NewDispatcher(DispatcherConfig{QLen: 4, Mode: ModeChannel})
	require.NoError(t, err)
	p.psp, err = ia.NewPSP(PSPConfig{Dispatcher: requests})
	require.NoError(t, err)
	require.NoError(t, p.a.Connect(ConnectConfig{Addr: ia.Attr().Address, Qual: p.psp.Qual()}))
	require.NoError(t, RequestOf(<-requests.C()).Accept(p.b, nil))
	require.NoError(t, p.psp.Close())
	require.NoError(t, requests.Close())
	return p
}

// establish waits for both ends.
func (p *pair) establish(t testing.TB) {
	t.Helper()
	for range 2 {
		ev := p.next(t)
		require.Equal(t, Established, ev.Number, "%v", ev)
	}
}

// next takes an event, from a dispatcher of mode queue by Dequeue. It fails the test
// when a wake-up was lost.
func (p *pair) next(t testing.TB) Event {
	t.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	if p.events.Mode() == ModeQueue {
		return p.dequeue(t, limit.C)
	}
	select {
	case ev := <-p.events.C():
		return ev
	case <-limit.C:
		assert.Fail(t, "a wake-up was lost")
		return Event{}
	}
}

func (p *pair) dequeue(t testing.TB, limit <-chan time.Time) Event {
	t.Helper()
	var buf [1]Event
	for {
		n, err := p.events.Dequeue(buf[:])
		if n == 1 || !assert.NoError(t, err) {
			return buf[0]
		}
		select {
		case <-limit:
			assert.Fail(t, "an event was lost")
			return Event{}
		default:
			goruntime.Gosched()
		}
	}
}

func channel(n int) DispatcherConfig { return DispatcherConfig{QLen: n, Mode: ModeChannel} }

func polledQueue(n int) DispatcherConfig { return DispatcherConfig{QLen: n} }

// pollers are the ways to empty the queues of a polled device, each with the way in
// which programs take events there.
var pollers = map[string]struct {
	cfg    PollerConfig
	events func(int) DispatcherConfig
}{
	"default":   {PollerConfig{}, channel},
	"pinned":    {PollerConfig{CPUs: allCPUs()}, channel},
	"consumers": {PollerConfig{}, polledQueue},
}
