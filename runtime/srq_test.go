package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/loop"
	"godat/hw/sim"
	"godat/mem"
)

func TestASharedQueueBelongsToItsAdapter(t *testing.T) {
	a, b := open(t, "loop"), open(t, "loop")
	pz, err := a.NewPZ()
	require.NoError(t, err)
	foreign, err := b.NewPZ()
	require.NoError(t, err)
	_, err = b.NewSRQ(pz, 0, 0)
	requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
	q, err := a.NewSRQ(pz, 0, 0)
	require.NoError(t, err)
	_, err = b.NewEndpoint(ep.Config{PZ: foreign, SRQ: q, Attr: &ep.Attr{}})
	requireCode(t, err, hw.InvalidHandle, hw.HandleSRQ)
	requireCode(t, a.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
	requireCode(t, pz.Close(), hw.InvalidState, hw.StatePZInUse)
	require.NoError(t, q.Close())
	require.NoError(t, pz.Close())
	require.NoError(t, a.CloseGraceful())
	_, err = a.NewSRQ(pz, 0, 0)
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestTheAsynchronousErrorsOfASharedQueueNameIt(t *testing.T) {
	spy := &spyProvider{Provider: loop.New()}
	ia := open(t, "loop", WithProvider(spy))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	q, err := ia.NewSRQ(pz, 0, 0)
	require.NoError(t, err)
	require.NoError(t, q.SetLowWatermark(1))
	ev, _, err := ia.Async().Wait(context.Background(), 1)
	require.NoError(t, err)
	assert.Same(t, q, ep.SRQOf(ev))
	source, why, _ := ev.Async()
	assert.Same(t, q, source)
	assert.Equal(t, event.SRQLowWatermark, why)

	ia.async.report(hw.AsyncEvent{Kind: hw.AsyncSRQError, SRQ: spy.srq})
	ev, _, err = ia.Async().Wait(context.Background(), 1)
	require.NoError(t, err)
	assert.Same(t, q, ep.SRQOf(ev))
	_, why, _ = ev.Async()
	assert.Equal(t, event.SRQToError, why)
	p, err := q.Query()
	require.NoError(t, err)
	assert.Equal(t, ep.SRQError, p.State)
}

func TestTheAttributesSayWhetherThereAreSharedQueues(t *testing.T) {
	attr := open(t, "loop").Attr()
	assert.Positive(t, attr.MaxSRQs)
	assert.Positive(t, attr.MaxSRQDepth)
}

// spyProvider is loop, and remembers the shared receive queue made on it.
type spyProvider struct {
	hw.Provider
	srq hw.SRQ
}

type spyDevice struct {
	hw.Device
	hw.SharedReceiver
	spy *spyProvider
}

func (p *spyProvider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := p.Provider.Open(cfg)
	return &spyDevice{dev, dev.(hw.SharedReceiver), p}, err
}

func (d *spyDevice) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	q, err := d.SharedReceiver.NewSRQ(cfg)
	d.spy.srq = q
	return q, err
}

func TestEndpointsOfAPolledDeviceShareAQueue(t *testing.T) {
	const (
		pairs    = 3
		depth    = 4
		messages = 100 // of each pair
	)
	s := sim.New(sim.Config{Seed: 11})
	ia := open(t, "sim", WithProvider(s))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	memory, err := pz.Alloc(4096, hw.AllPrivileges)
	require.NoError(t, err)
	events, err := ia.NewDispatcher(channel(1024))
	require.NoError(t, err)
	requests, err := ia.NewDispatcher(channel(pairs))
	require.NoError(t, err)
	q, err := ia.NewSRQ(pz, depth, 0)
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: requests})
	require.NoError(t, err)
	var from [pairs]*ep.Endpoint
	number := make(map[*ep.Endpoint]int)
	for i := range from {
		from[i], err = ia.NewEndpoint(ep.Config{PZ: pz, Conn: events})
		require.NoError(t, err)
		to, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: events, Conn: events, SRQ: q, Attr: &ep.Attr{}})
		require.NoError(t, err)
		require.NoError(t, from[i].Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}))
		require.NoError(t, ep.RequestOf(<-requests.C()).Accept(to, nil))
		for range 2 {
			require.Equal(t, event.Established, (<-events.C()).Number)
		}
		number[to] = i
	}
	requireCode(t, q.Resize(depth+1), hw.InsufficientResources, hw.ResourceTEVD)
	require.NoError(t, q.Resize(depth-1))
	require.NoError(t, q.Resize(depth))
	for i := range depth {
		require.NoError(t, q.PostRecv(uint64(i), memory.Segment(8*i, 8)))
	}
	errs := make(chan error, pairs)
	for i, e := range from {
		go func() { errs <- sendSuppressed(e, memory, 1024+8*i, messages) }()
	}
	var got [pairs]int
	for range pairs * messages {
		ev := <-events.C()
		require.Equal(t, hw.StatusSuccess, ev.Status, "%v", ev)
		i, ok := number[ep.Of(ev)]
		require.True(t, ok)
		require.EqualValues(t, i+1, memory.Bytes()[8*ev.Cookie])
		got[i]++
		require.NoError(t, q.PostRecv(ev.Cookie, memory.Segment(8*int(ev.Cookie), 8)))
	}
	for range pairs {
		require.NoError(t, <-errs)
	}
	assert.Equal(t, [pairs]int{messages, messages, messages}, got)
	p, err := q.Query()
	require.NoError(t, err)
	assert.Equal(t, depth, p.Available)
	assert.Equal(t, depth, p.Outstanding)
	for e := range number {
		require.NoError(t, e.Close())
	}
	require.NoError(t, q.Resize(depth+1), "no endpoint bounds it any more")
	require.NoError(t, ia.Close())
	assert.Empty(t, s.Violations())
}

// sendSuppressed sends n messages that begin with the endpoint's number, without
// events.
func sendSuppressed(e *ep.Endpoint, memory *mem.LMR, off, n int) error {
	memory.Bytes()[off] = byte((off-1024)/8 + 1)
	for sent := 0; sent < n; {
		err := e.PostSend(0, hw.Suppress, memory.Segment(off, 8))
		switch {
		case err == nil:
			sent++
		case errors.Is(err, hw.ErrInsufficientResources):
			goruntime.Gosched()
		default:
			return err
		}
	}
	return nil
}
