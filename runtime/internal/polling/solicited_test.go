package polling

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// A dispatcher that notifies only when solicited has completion queues that it shares
// with no other dispatcher, and that wake the poller for solicited completions only.
func TestSolicitedDispatchersHaveQueuesOfTheirOwn(t *testing.T) {
	dev := newPolled()
	engine, _ := newTestEngine(t, dev, Config{CQDepth: 100}, newCollector())
	d := newDispatcher(t)
	loud := attach(t, engine, d, 10)
	assert.False(t, loud.cfg.SolicitedOnly)
	solicited := delivery.Feed{Streams: event.StreamDTO, Flags: hw.SolicitedWait}
	require.NoError(t, wiring(d).Feeds().Attach(solicited))
	silent := attach(t, engine, d, 10)
	assert.True(t, silent.cfg.SolicitedOnly)
	assert.Same(t, silent, attach(t, engine, d, 10))
	wiring(d).Feeds().Detach(solicited)
	assert.Same(t, loud, attach(t, engine, d, 10))
	assert.False(t, attach(t, engine, nil, 1).cfg.SolicitedOnly)

	// Each Dequeue has the device polled as long as the dispatcher has such a queue.
	look := func() { _, _ = d.Dequeue(make([]event.Event, 1)) }
	asleep := func() bool { return dev.asleep() && engine.poller.asleep.Load() }
	require.Eventually(t, asleep, time.Minute, time.Millisecond)
	polls := dev.polls.Load()
	look()
	require.Eventually(t, func() bool { return dev.polls.Load() > polls && asleep() }, time.Minute, time.Millisecond)
	engine.Detach(silent, 20)
	require.Eventually(t, asleep, time.Minute, time.Millisecond)
	polls = dev.polls.Load()
	look()
	assert.True(t, asleep())
	assert.Equal(t, polls, dev.polls.Load())
}
