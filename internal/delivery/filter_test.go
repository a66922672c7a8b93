package delivery

import (
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// takeOne takes the only event that is ready.
func takeOne(t *testing.T, d *Dispatcher, kind Kind) event.Event {
	t.Helper()
	if kind == KindChannel {
		require.Len(t, d.C(), 1)
		return <-d.C()
	}
	all := ready(d)
	require.Len(t, all, 1)
	require.Len(t, all[0].Events(), 1)
	defer all[0].Release()
	return all[0].Events()[0]
}

func TestARefusedEventTakesNoPlace(t *testing.T) {
	for _, kind := range []Kind{KindChannel, KindBatch} {
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Kind: kind})
		d.SetFilter(func(_ any, _ event.Number, _ hw.Status, cookie uint64, _ any) bool {
			seen = append(seen, cookie)
			return cookie%2 == 0
		})
		q := d.Main()
		room := int(q.places.limit.Load())
		for range 3 { // if a refused event kept its place, the second Reserve would fail
			require.True(t, q.Reserve(room))
			for i := range room - 3 {
				succeed(q, new(Lane), nil, uint64(2*i+1), hw.OpSend, 0)
			}
			q.PutAll([]event.Event{*dto(1), *dto(2), *dto(3)})
			q.Flush()
			assert.EqualValues(t, 2, takeOne(t, d, kind).Cookie)
		}
		assert.Len(t, seen, 3*room)
		require.NoError(t, d.Close())
	}
}

func TestTheFilterHearsOfSuppressedRequestsWhichMakeNoEvents(t *testing.T) {
	for _, kind := range []Kind{KindRing, KindChannel, KindBatch} {
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Kind: kind})
		if kind != KindRing {
			d.SetFilter(func(source any, number event.Number, status hw.Status, cookie uint64, _ any) bool {
				assert.Equal(t, "source", source)
				assert.Equal(t, event.DTOCompletion, number)
				assert.Equal(t, hw.StatusSuccess, status)
				seen = append(seen, cookie)
				return true
			})
		}
		q := d.Main()
		require.True(t, q.Reserve(2))
		for cookie := range uint64(2) {
			if assert.Equal(t, kind != KindRing, q.HearsSuccesses()); kind != KindRing {
				q.Suppressed("source", 7+cookie)
			}
		}
		q.Release(2)
		q.Flush()
		if kind != KindRing {
			assert.Equal(t, []uint64{7, 8}, seen)
			assert.Empty(t, d.C())
			assert.Empty(t, ready(d))
		}
		require.NoError(t, d.Close())
	}
}

func TestAFilterOfFailuresSeesNoOtherCompletions(t *testing.T) {
	const mark = 1 << 63
	for _, kind := range []Kind{KindChannel, KindBatch} {
		d := newDispatcher(t, Config{QLen: 8, Kind: kind})
		d.FilterFailures()
		var seen []uint64
		d.SetFilter(func(_ any, _ event.Number, _ hw.Status, cookie uint64, _ any) bool {
			seen = append(seen, cookie)
			return cookie != mark|2
		})
		q := d.Main()
		assert.False(t, q.HearsSuccesses())
		require.True(t, q.Reserve(7))
		succeed(q, new(Lane), nil, mark|1, hw.OpSend, 0)
		q.PutAll([]event.Event{*dto(mark | 2), *flushed(mark | 2), *flushed(3)})
		q.Put(flushed(mark | 2))
		q.Put(&event.Event{Number: event.Disconnected, Cookie: 4})
		q.Put(flushed(mark | 5))
		q.Flush()
		var got []uint64
		if kind == KindChannel {
			for range 5 {
				got = append(got, (<-d.C()).Cookie)
			}
		} else {
			for _, b := range ready(d) {
				got = append(got, cookies(b.Events())...)
			}
		}
		assert.Equal(t, []uint64{mark | 1, mark | 2, 3, 4, mark | 5}, got)
		assert.Equal(t, []uint64{mark | 2, mark | 2, 4, mark | 5}, seen)
		require.NoError(t, d.Close())
	}
}

func TestTheFilterSeesSilentEventsAndConnectionEvents(t *testing.T) {
	var seen []event.Number
	d := newDispatcher(t, Config{QLen: 4, Kind: KindChannel})
	d.SetFilter(func(_ any, number event.Number, _ hw.Status, _ uint64, _ any) bool {
		seen = append(seen, number)
		return number == event.Disconnected
	})
	q := d.Main()
	require.True(t, q.Reserve(2))
	q.Put(&event.Event{Number: event.DTOCompletion, Op: hw.OpSend, Flags: event.Silent, Cookie: 7})
	q.Put(&event.Event{Number: event.Disconnected})
	assert.Equal(t, event.Disconnected, (<-d.C()).Number)
	assert.Equal(t, []event.Number{event.DTOCompletion, event.Disconnected}, seen)
	require.NoError(t, d.Close())
	_, open := <-d.C()
	assert.False(t, open, "nothing is held back for what was refused")
}

func TestASinkRouteTakesNoPlaces(t *testing.T) {
	for _, kind := range []Kind{KindRing, KindChannel, KindBatch} {
		const sunk = 1 << 63
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Kind: kind})
		d.SinkRoute(sunk, sunk, func(_ any, _ event.Number, status hw.Status, cookie uint64, _ any) bool {
			if status == hw.StatusSuccess {
				seen = append(seen, cookie&^sunk)
			}
			return true // which does not matter
		})
		assert.Same(t, d.Main(), d.For(1))
		q := d.For(sunk | 1)
		require.True(t, q.Sink())
		assert.False(t, d.Main().Sink())
		require.True(t, q.Reserve(1000))
		require.True(t, q.TryReserve())
		require.False(t, q.Full())
		succeed(q, new(Lane), nil, sunk|1, hw.OpSend, 0)
		q.Put(silenced(dto(2)))
		q.PutAll([]event.Event{*dto(3), *dto(4), *flushed(5)})
		q.Suppressed(nil, 6)
		q.Release(1)
		q.Flush()
		d.Flush()
		assert.Equal(t, list(1, 2, 3, 4, 6), seen)
		assert.Zero(t, d.Counters(false).Events)
		require.True(t, d.Main().Reserve(4), "the others have all places")
		d.Main().Release(4)
		require.NoError(t, d.Close(), "a sink loses no events")
	}
}

// A channel is closed behind the last event. A sink has none, so nobody waits for those
// of operations under way.
func TestADispatcherWithASinkClosesItsChannelAtOnce(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 4, Kind: KindChannel})
	seen, ended := 0, 0
	d.SetSink(func(any, event.Number, hw.Status, uint64, any) bool {
		seen++
		return false
	}, func() { ended++ })
	require.True(t, d.Main().Reserve(2))
	require.False(t, d.Main().Full())
	d.Abort()
	_, open := <-d.C()
	assert.False(t, open)
	assert.Equal(t, 1, ended)
	succeed(d.Main(), new(Lane), nil, 1, hw.OpSend, 0)
	d.Main().Put(&event.Event{Number: event.Disconnected})
	d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
	assert.Equal(t, 2, seen)
}

func TestADispatcherWithASinkKeepsRoomForListedEventsAlone(t *testing.T) {
	const places = 1000
	d := newDispatcher(t, Config{QLen: places, Kind: KindChannel})
	seen, ended := 0, 0
	d.SetSink(func(any, event.Number, hw.Status, uint64, any) bool {
		seen++
		return false
	}, func() { ended++ })
	assert.Equal(t, asyncRoom, cap(d.C()))
	q := d.Main()
	for range 3 {
		require.True(t, q.Reserve(places))
		for range places / 2 {
			succeed(q, new(Lane), nil, 1, hw.OpSend, 0)
			q.Put(&event.Event{Number: event.Disconnected})
		}
	}
	assert.Equal(t, 3*places, seen)
	for range 2 * asyncRoom { // the later ones wait for room
		d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
	}
	for range 2 * asyncRoom {
		assert.Equal(t, event.AsyncEPBroken, (<-d.C()).Number)
	}
	assert.Zero(t, ended)
	require.NoError(t, d.Close())
	_, open := <-d.C()
	assert.False(t, open)
	assert.Equal(t, 1, ended)
}
