package delivery

import (
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// takeOne takes the only event that is ready.
func takeOne(t *testing.T, d *Dispatcher, kind *Way) event.Event {
	t.Helper()
	if kind == Channel {
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
	for _, kind := range []*Way{Channel, Batches} {
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Way: kind})
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
	for _, kind := range []*Way{Ring, Channel, Batches} {
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Way: kind})
		if kind != Ring {
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
			if assert.Equal(t, kind != Ring, q.HearsSuccesses()); kind != Ring {
				q.Suppressed("source", 7+cookie)
			}
		}
		q.Release(2)
		q.Flush()
		if kind != Ring {
			assert.Equal(t, []uint64{7, 8}, seen)
			assert.Empty(t, d.C())
			assert.Empty(t, ready(d))
		}
		require.NoError(t, d.Close())
	}
}

func TestAFilterOfFailuresSeesNoOtherCompletions(t *testing.T) {
	const mark = 1 << 63
	for _, kind := range []*Way{Channel, Batches} {
		d := newDispatcher(t, Config{QLen: 8, Way: kind})
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
		if kind == Channel {
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
	d := newDispatcher(t, Config{QLen: 4, Way: Channel})
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

func TestAFuncRouteTakesNoPlaces(t *testing.T) {
	for _, kind := range []*Way{Ring, Channel, Batches} {
		const sunk = 1 << 63
		var seen []uint64
		d := newDispatcher(t, Config{QLen: 4, Way: kind})
		d.FuncRoute(sunk, sunk, func(_ any, status hw.Status, cookie uint64) {
			if status == hw.StatusSuccess {
				seen = append(seen, cookie&^sunk)
			}
		})
		assert.Same(t, d.Main(), d.For(1))
		q := d.For(sunk | 1)
		require.True(t, q.Placeless())
		assert.False(t, d.Main().Placeless())
		require.True(t, q.Reserve(1000))
		require.True(t, q.TryReserve())
		require.False(t, q.Full())
		require.True(t, q.HearsSuccesses(), "of suppressed requests")
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
		require.NoError(t, d.Close(), "a function loses no events")
	}
}

// heard makes a dispatcher with a function that notes the numbers of events.
func heard(t *testing.T) (d *Dispatcher, numbers *[]event.Number) {
	t.Helper()
	numbers = new([]event.Number)
	d = newDispatcher(t, Config{Way: Func, Func: func(ev event.Event) { *numbers = append(*numbers, ev.Number) }})
	d.EndWith(event.Event{Number: event.Closed})
	return d, numbers
}

// Nobody waits for the events of operations under way.
func TestAFunctionHearsOfTheCloseAtOnceAndOfWhatComesBehindIt(t *testing.T) {
	d, got := heard(t)
	require.True(t, d.Main().Reserve(2))
	require.False(t, d.Main().Full())
	d.Abort()
	assert.Equal(t, []event.Number{event.Closed}, *got)
	succeed(d.Main(), new(Lane), nil, 1, hw.OpSend, 0)
	d.Main().Put(&event.Event{Number: event.Disconnected})
	d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
	d.Flush()
	assert.Equal(t, []event.Number{event.Closed, event.DTOCompletion, event.Disconnected}, *got)
}

func TestAFunctionHearsOfListedEventsAtOnce(t *testing.T) {
	d, got := heard(t)
	d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
	d.PutRequest(&AsyncNode{Event: event.Event{Number: event.ConnectionRequest}})
	assert.Equal(t, []event.Number{event.AsyncEPBroken, event.ConnectionRequest}, *got)
	require.NoError(t, d.Close())
	assert.Equal(t, []event.Number{event.AsyncEPBroken, event.ConnectionRequest, event.Closed}, *got)
}

func TestAFunctionTakesAnyNumberOfEvents(t *testing.T) {
	d, got := heard(t)
	q := d.Main()
	for range 3 {
		require.True(t, q.Reserve(1000))
		for range 500 {
			succeed(q, new(Lane), nil, 1, hw.OpSend, 0)
			q.Put(&event.Event{Number: event.Disconnected})
		}
	}
	assert.Len(t, *got, 3*1000)
	assert.Nil(t, d.C())
	require.NoError(t, d.Close())
}
