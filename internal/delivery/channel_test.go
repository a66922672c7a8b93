package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestChannelCarriesEventsInOrder(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel})
	put(t, d.Main(), 1, 2, 3)
	require.True(t, d.Main().Reserve(20))
	evs := make([]event.Event, 20)
	for i := range evs {
		evs[i] = *dto(uint64(4 + i))
	}
	d.Main().PutAll(evs)
	got := received(d.C())
	require.Len(t, got, 23)
	for i, c := range got {
		assert.EqualValues(t, i+1, c)
	}
}

// Each row begins with two silent events that are held.
func TestHeldEventsGoOutInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(t *testing.T, d *Dispatcher)
		want []uint64
	}{
		"not by a producer's Flush":     {func(_ *testing.T, d *Dispatcher) { d.Main().Flush() }, list()},
		"not by another silent one":     {func(t *testing.T, d *Dispatcher) { putSilent(t, d.Main(), 3) }, list()},
		"in front of one that notifies": {func(t *testing.T, d *Dispatcher) { put(t, d.Main(), 3) }, list(1, 2, 3)},
		"on an error":                   {func(t *testing.T, d *Dispatcher) { putEvent(t, d.Main(), flushed(3), true) }, list(1, 2, 3)},
		"on a connection event": {func(t *testing.T, d *Dispatcher) {
			putEvent(t, d.Main(), &event.Event{Number: event.Disconnected, Cookie: 3}, true)
		}, list(1, 2, 3)},
		"on a software event": {func(t *testing.T, d *Dispatcher) { require.NoError(t, d.PostSoftware(nil)) }, list(1, 2, 0)},
		"on an asynchronous error": {func(_ *testing.T, d *Dispatcher) {
			d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
		}, list(1, 2, 0)},
		"when the consumer asks":              {func(_ *testing.T, d *Dispatcher) { d.Flush() }, list(1, 2)},
		"when half the length is held":        {func(t *testing.T, d *Dispatcher) { putSilent(t, d.Main(), 3, 4) }, list(1, 2, 3, 4)},
		"when a reservation would be refused": {func(t *testing.T, d *Dispatcher) { require.False(t, d.Main().Reserve(8+ofMany.slack()-1)) }, list(1, 2)},
		"on Close":                            {func(t *testing.T, d *Dispatcher) { require.NoError(t, d.Close()) }, list(1, 2)},
		"by PutAll of silent and loud ones": {func(t *testing.T, d *Dispatcher) {
			require.True(t, d.Main().Reserve(4))
			d.Main().PutAll([]event.Event{
				{Number: event.DTOCompletion, Cookie: 3, Flags: event.Silent},
				{Number: event.DTOCompletion, Cookie: 4},
				{Number: event.DTOCompletion, Cookie: 5, Flags: event.Silent},
				{Number: event.DTOCompletion, Cookie: 6, Flags: event.Silent},
			})
		}, list(1, 2, 3, 4)},
		"by PutAll of a silent error": {func(t *testing.T, d *Dispatcher) {
			require.True(t, d.Main().Reserve(1))
			d.Main().PutAll([]event.Event{{Number: event.DTOCompletion, Cookie: 3, Flags: event.Silent, Status: hw.StatusFlushed}})
		}, list(1, 2, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: Channel, QLen: 8, Streams: allStreams})
			putSilent(t, d.Main(), 1, 2)
			assert.Empty(t, received(d.C()), "held")
			tc.do(t, d)
			assert.Equal(t, tc.want, received(d.C()))
		})
	}
}

func TestALoopOfSilentWorkNeverWedges(t *testing.T) {
	for _, mode := range []*Way{Channel, Batches} {
		for _, qlen := range []int{1, 2, 3, 16} {
			d := newDispatcher(t, Config{Way: mode, QLen: qlen})
			var got []uint64
			for i := range uint64(1000) {
				if !d.Main().Reserve(1) {
					switch mode {
					case Channel:
						got = append(got, received(d.C())...)
					default:
						b := <-d.Batches()
						got = append(got, cookies(b.Events())...)
						b.Release()
					}
					require.True(t, d.Main().Reserve(1), "%v %d: room after %d", mode, qlen, len(got))
				}
				d.Main().Put(silenced(dto(i)))
				d.Main().Flush()
			}
			require.NotEmpty(t, got)
			for i, c := range got {
				require.EqualValues(t, i, c)
			}
		}
	}
}

// Held events keep their reservations, so they count when Reserve refuses a place.
func TestHeldEventsCountAsOutstanding(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel, QLen: 8})
	putSilent(t, d.Main(), 1, 2)
	require.True(t, d.Main().Reserve(8+ofMany.slack()-2))
	require.False(t, d.Main().Reserve(1))
	d.Main().Release(8 + ofMany.slack() - 2)
}

// A channel of one endpoint has a place for each event that its owner asked for, and for
// those on their way; it delivers what comes beside them.
func TestAChannelOfOneEndpointHasThePlacesThatWereAskedFor(t *testing.T) {
	const qlen, listed = 8, 3
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: qlen, Way: Channel})
		wide := cap(d.C())
		d.OfOne()
		assert.Less(t, cap(d.C()), wide/2)
		q := d.Main()
		require.True(t, q.Reserve(qlen+ofOne.slack()))
		require.False(t, q.Reserve(1))
		q.Release(qlen + ofOne.slack())
		for c := range uint64(qlen) {
			if c%2 == 0 {
				put(t, q, c)
			} else {
				putSilent(t, q, c)
			}
		}
		for c := range uint64(listed) {
			d.PutAsync(asyncNode(100 + c))
		}
		var got []uint64
		for range listed + 1 {
			time.Sleep(2 * pumpInterval)
			got = append(got, received(d.C())...)
		}
		assert.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102}, got)
		require.NoError(t, d.Close())
	})
}
