package runtime

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/loop"
)

func TestAsynchronousErrorsBecomeEventsAndLogLines(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	ia := open(t, "loop", withLogger(zap.New(core)))
	qp := &fakeQP{}
	for kind, want := range map[hw.AsyncKind]event.Number{
		hw.AsyncDeviceFatal:   event.AsyncIACatastrophic,
		hw.AsyncPortDown:      event.AsyncIACatastrophic,
		hw.AsyncQPError:       event.AsyncEPBroken,
		hw.AsyncCQOverrun:     event.AsyncEVDOverflow,
		hw.AsyncSRQError:      event.AsyncEPBroken,
		hw.AsyncProviderError: event.AsyncProviderError,
	} {
		cause := errors.New("it happened")
		for range 5 { // latched: all five make one event
			ia.async.report(hw.AsyncEvent{Kind: kind, QP: qp, Err: cause})
		}
		ev, more, err := ia.Async().Wait(context.Background(), 1)
		require.NoError(t, err)
		assert.Equal(t, want, ev.Number)
		assert.Zero(t, more, "a latched error came twice")
		entries := logs.TakeAll()
		entries = entries[len(entries)-5:]
		assert.Equal(t, zap.ErrorLevel, entries[0].Level)
		assert.Equal(t, "it happened", entries[0].ContextMap()["error"])
	}
	require.ErrorIs(t, ia.Async().Close(), hw.ErrInvalidState)
}

type fakeQP struct{ hw.QP }

func TestTheAsynchronousDispatcherMayBeSharedOrNone(t *testing.T) {
	d, err := evd.New(evd.Config{QLen: 4, Mode: evd.ModeChannel})
	require.NoError(t, err)
	a, b := open(t, "loop", WithAsync(d)), open(t, "loop", WithAsync(d))
	assert.Same(t, d, a.Async())
	requireCode(t, d.Close(), hw.InvalidState, hw.StateEVDInUse)
	for _, ia := range []*IA{a, b} {
		ia.async.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal})
		assert.Same(t, ia, (<-d.C()).Source)
		require.NoError(t, ia.Close())
	}
	require.NoError(t, d.Close())

	none := open(t, "loop", WithAsync(nil))
	assert.Nil(t, none.Async())
	none.async.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal})

	wrong, err := evd.New(evd.Config{QLen: 4, Streams: event.StreamDTO})
	require.NoError(t, err)
	_, err = Open(context.Background(), "loop", WithAsync(wrong))
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
}

// keepQPs opens loop devices and keeps their queue pairs.
type keepQPs struct {
	hw.Device
	qps []hw.QP
}

func (*keepQPs) Name() string { return "keep" }

func (k *keepQPs) Open(cfg hw.OpenConfig) (dev hw.Device, err error) {
	k.Device, err = loop.New().Open(cfg)
	return k, err
}

func (k *keepQPs) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	qp, err := k.Device.NewQP(cfg)
	k.qps = append(k.qps, qp)
	return qp, err
}

func TestAQueuePairsErrorNamesItsEndpoint(t *testing.T) {
	k := &keepQPs{}
	ia := open(t, "keep", WithProvider(k))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	endpoints := make([]*ep.Endpoint, 3)
	for i := range endpoints {
		endpoints[i], err = ia.NewEndpoint(ep.Config{PZ: pz})
		require.NoError(t, err)
	}
	for i, e := range endpoints {
		for range 2 { // latched: both make one event for each kind
			ia.async.report(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: k.qps[i]})
		}
		var events [2]event.Event
		n, err := ia.Async().Dequeue(events[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.Same(t, e, ep.Of(events[0]))
		source, why, ok := events[0].Async()
		assert.True(t, ok)
		assert.Same(t, e, source)
		assert.Equal(t, event.EPToError, why)
	}
	require.NoError(t, endpoints[0].Close())
	ia.async.report(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: k.qps[0]})
	var events [2]event.Event
	n, err := ia.Async().Dequeue(events[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	assert.Nil(t, events[0].Source, "the endpoint is gone")
}

func TestErrorsOfClosedEndpointsMakeRoomForOthers(t *testing.T) {
	k := &keepQPs{}
	ia := open(t, "keep", WithProvider(k))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	var events [2]event.Event
	for i := range asyncNodes + 10 {
		e, err := ia.NewEndpoint(ep.Config{PZ: pz})
		require.NoError(t, err)
		ia.async.report(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: k.qps[i]})
		n, err := ia.Async().Dequeue(events[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Same(t, e, ep.Of(events[0]), "endpoint %d", i)
		require.NoError(t, e.Close())
	}
	assert.LessOrEqual(t, len(ia.async.nodes), asyncNodes)
}

// An adapter that closes still reports its device's errors: their latches stay.
func TestAnErrorIsLatchedWhileTheAdapterCloses(t *testing.T) {
	k := &keepQPs{}
	ia := open(t, "keep", WithProvider(k))
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	for range asyncNodes {
		_, err := ia.NewEndpoint(ep.Config{PZ: pz})
		require.NoError(t, err)
	}
	fatal := hw.AsyncEvent{Kind: hw.AsyncDeviceFatal}
	ia.async.report(fatal)
	for _, qp := range k.qps[1:] {
		ia.async.report(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: qp})
	}
	ia.gate.Lock()
	ia.gate.shut() // as Close begins
	ia.gate.Unlock()
	ia.async.report(hw.AsyncEvent{Kind: hw.AsyncQPError, QP: k.qps[0]})
	ia.async.report(fatal)
	found := 0
	var events [asyncNodes + 2]event.Event
	n, err := ia.Async().Dequeue(events[:])
	require.NoError(t, err)
	for _, ev := range events[:n] {
		if ev.Number == event.AsyncIACatastrophic {
			found++
		}
	}
	assert.Equal(t, 1, found, "the error had not been taken when it was reported again")
}

// early is a device that reports errors from its opening on.
type early struct {
	keepQPs
	stop, stopped chan struct{}
}

func (k *early) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := k.keepQPs.Open(cfg)
	k.stop, k.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(k.stopped)
		for !isDone(k.stop) {
			for kind := range asyncKinds {
				cfg.Async(hw.AsyncEvent{Kind: kind, QP: &fakeQP{}})
			}
		}
	}()
	return dev, err
}

func TestAnErrorThatComesWhileAnAdapterOpensIsNoDataRace(t *testing.T) {
	for range 20 {
		k := &early{}
		ia := open(t, "keep", WithProvider(k))
		close(k.stop)
		<-k.stopped
		ia.async.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal})
		var events [32]event.Event
		n, err := ia.Async().Dequeue(events[:])
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(events[:n], func(ev event.Event) bool { return ev.Source == any(ia) }), "it is open")
	}
}
