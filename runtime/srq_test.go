package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/loop"
)

func TestASharedQueueBelongsToItsAdapter(t *testing.T) {
	a, b := open(t, "loop"), open(t, "loop")
	pz, err := a.NewPZ()
	require.NoError(t, err)
	foreign, err := b.NewPZ()
	require.NoError(t, err)
	_, err = b.NewSRQ(pz, SRQAttr{})
	requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
	q, err := a.NewSRQ(pz, SRQAttr{})
	require.NoError(t, err)
	_, err = b.NewEndpoint(EndpointConfig{PZ: foreign, SRQ: q, Attr: &EndpointAttr{}})
	requireCode(t, err, hw.InvalidHandle, hw.HandleSRQ)
	requireCode(t, a.CloseGraceful(), hw.InvalidState, hw.StateIAInUse)
	requireCode(t, pz.Close(), hw.InvalidState, hw.StatePZInUse)
	require.NoError(t, q.Close())
	require.NoError(t, pz.Close())
	require.NoError(t, a.CloseGraceful())
	_, err = a.NewSRQ(pz, SRQAttr{})
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}

func TestTheAsynchronousErrorsOfASharedQueueNameIt(t *testing.T) {
	spy := &spyProvider{}
	ia := open(t, "loop", WithProvider(spy))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	q, err := ia.NewSRQ(pz, SRQAttr{})
	require.NoError(t, err)
	require.NoError(t, q.SetLowWatermark(1))
	ev, _, err := ia.Async().Wait(context.Background(), 1)
	require.NoError(t, err)
	assert.Same(t, q, SRQOf(ev))
	source, why, _ := ev.Async()
	assert.Same(t, q, source)
	assert.Equal(t, evd.SRQLowWatermark, why)

	ia.async.report(hw.AsyncEvent{Kind: hw.AsyncSRQError, SRQ: spy.srq})
	ev, _, err = ia.Async().Wait(context.Background(), 1)
	require.NoError(t, err)
	assert.Same(t, q, SRQOf(ev))
	_, why, _ = ev.Async()
	assert.Equal(t, evd.SRQToError, why)
	p, err := q.Query(SRQFieldAll)
	require.NoError(t, err)
	assert.Equal(t, SRQError, p.State)
}

func TestTheAttributesSayWhetherThereAreSharedQueues(t *testing.T) {
	q, err := open(t, "loop").Query(IAFieldAll, ProviderFieldAll)
	require.NoError(t, err)
	assert.Positive(t, q.IA.MaxSRQs)
	assert.Positive(t, q.IA.MaxEPPerSRQ)
	assert.Positive(t, q.IA.MaxRecvPerSRQ)
	assert.True(t, q.Provider.SRQ)
	assert.True(t, q.Provider.SRQInfo)
	assert.False(t, q.Provider.SRQPZDifference)
	assert.Positive(t, q.Provider.SRQWatermarks)
}

// spyProvider is loop, and remembers the shared queue that was made on it.
type spyProvider struct {
	loop.Provider
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
