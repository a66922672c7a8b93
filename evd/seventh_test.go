package evd

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// A way of delivery that the library does not have: of all completions the newest one alone is
// kept, for a program that looks now and then how far something has come. In the library it
// would be one file of package delivery, and one line in ways.
type newest struct {
	q *delivery.Queue

	mu   sync.Mutex
	last event.Event
	came uint64
}

var newestWay = &delivery.Way{Name: "newest", Begin: func(q *delivery.Queue, _ *delivery.Config) {
	q.SinkTo(&newest{q: q})
}}

func (n *newest) Put(evs []event.Event) {
	n.mu.Lock()
	n.last = evs[len(evs)-1]
	n.came += uint64(len(evs))
	n.mu.Unlock()
	n.q.Done(len(evs))
}

func (*newest) Flush(bool) {}

func (n *newest) Free(places int) { n.q.Unuse(places) }

func (n *newest) Counts() (came uint64, listed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.came, 0
}

func TestASeventhWayIsAFileAndALine(t *testing.T) {
	was := ways
	defer func() { ways = was }()
	ways = append(ways[:len(ways):len(ways)], newestWay) // the line
	mode := Mode(len(was))

	assert.Equal(t, "newest", mode.String())
	d, err := New(Config{Mode: mode, QLen: 3})
	require.NoError(t, err)
	q := d.inner.Main()
	assert.Equal(t, 3, d.Snapshot().QLen)
	for cookie := uint64(0); cookie < 30; cookie += 3 {
		require.True(t, q.Reserve(3), "the places are free again")
		require.False(t, q.Reserve(1))
		q.PutAll([]event.Event{*dto(cookie), *dto(cookie + 1)})
		q.Put(dto(cookie + 2))
		q.Flush()
		kept := d.inner.Sink().(*newest)
		assert.Equal(t, cookie+2, kept.last.Cookie)
	}
	counted, err := d.Counters()
	require.NoError(t, err)
	assert.EqualValues(t, 30, counted.Events)
	assert.EqualValues(t, 30, counted.Taken)
	require.True(t, q.Reserve(1))
	require.ErrorIs(t, d.Close(), hw.ErrInvalidState, "a post is under way")
	q.Release(1)
	_, err = d.Dequeue(make([]event.Event, 1))
	require.ErrorIs(t, err, hw.ErrInvalidState)
	require.NoError(t, d.Close())
}
