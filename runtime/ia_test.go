package runtime

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

func TestAMessageGoesFromEndToEnd(t *testing.T) {
	p := connect(t, open(t, "loop"), channel(16))
	p.establish(t)
	require.NoError(t, p.b.PostRecv(1, hw.Default, p.mem.Segment(2048, 100)))
	copy(p.mem.Bytes(), "hello")
	require.NoError(t, p.a.PostSend(2, hw.Default, p.mem.Segment(0, 5)))
	got := make(map[uint64]event.Event)
	for range 2 {
		ev := <-p.events.C()
		got[ev.Cookie] = ev
	}
	assert.Equal(t, p.b, ep.Of(got[1]))
	assert.EqualValues(t, 5, got[1].Length)
	assert.Equal(t, p.a, ep.Of(got[2]))
	assert.Equal(t, hw.StatusSuccess, got[2].Status)
	assert.Equal(t, "hello", string(p.mem.Bytes()[2048:2053]))
}

func TestAdaptersDoNotMix(t *testing.T) {
	a, b := open(t, "loop"), open(t, "loop")
	pz, err := a.NewPZ()
	require.NoError(t, err)
	_, err = b.NewEndpoint(ep.Config{PZ: pz})
	requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
}

func TestCallbacksRunInThePoolAndMayNotCloseTheAdapter(t *testing.T) {
	ia := open(t, "loop", WithUpcalls(1))
	type call struct {
		n           int
		hard, grace error
	}
	calls := make(chan call, 8)
	cfg := evd.Config{
		QLen: 8, Mode: evd.ModeCallback, Streams: event.DefaultStreams | event.StreamSoftware,
		Callback: func(evs []event.Event) { calls <- call{len(evs), ia.Close(), ia.CloseGraceful()} },
	}
	d, err := ia.NewDispatcher(cfg)
	require.NoError(t, err)
	require.NoError(t, d.PostSoftware("x"))
	got := <-calls
	assert.Equal(t, 1, got.n)
	requireCode(t, got.hard, hw.InvalidState, 0)
	requireCode(t, got.grace, hw.InvalidState, 0)
	require.Eventually(t, func() bool { return ia.pool.running() }, time.Minute, time.Millisecond)
}

func TestAPoolMayHaveAnyNumberOfPlaces(t *testing.T) {
	for _, n := range []int{1, math.MaxInt32, math.MaxInt} {
		open(t, "loop", WithUpcalls(n))
	}
}

// A callback blocks in the pool's only place. The callbacks of other dispatchers still
// run.
func TestABlockedCallbackDelaysNoOtherCallback(t *testing.T) {
	ia := open(t, "loop", WithUpcalls(1))
	gate, came := make(chan struct{}), make(chan int, 4)
	for i := range 4 {
		d, err := ia.NewDispatcher(evd.Config{
			QLen: 8, Mode: evd.ModeCallback, Streams: event.StreamSoftware,
			Callback: func([]event.Event) { came <- i; <-gate },
		})
		require.NoError(t, err)
		require.NoError(t, d.PostSoftware(nil))
	}
	for range 4 {
		<-came
	}
	close(gate)
}

func TestDispatchersThatAreClosedAreForgotten(t *testing.T) {
	ia := open(t, "loop")
	for range 10 * minSweep {
		d, err := ia.NewDispatcher(channel(1))
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	assert.LessOrEqual(t, len(ia.lists.dispatchers.of), minSweep)
}
