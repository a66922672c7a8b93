package delivery

import (
	"sync"
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// ready takes the batches that are in the channel, without releasing them.
func ready(d *Dispatcher) (bs []*Batch) {
	for {
		select {
		case b, ok := <-d.Batches():
			if ok {
				bs = append(bs, b)
				continue
			}
		default:
		}
		return bs
	}
}

func contents(bs []*Batch) [][]uint64 {
	cs := [][]uint64{}
	for _, b := range bs {
		cs = append(cs, cookies(b.Events()))
	}
	return cs
}

func TestBatchGoesOutWhenItIsFullOrTheProducerHasNoMore(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 32, BatchMax: 3})
	q := d.Main()
	require.True(t, q.Reserve(8))
	for c := range uint64(2) {
		q.Put(dto(c))
	}
	assert.Empty(t, ready(d), "it may become fuller")
	q.Put(dto(2))
	assert.Equal(t, [][]uint64{{0, 1, 2}}, contents(ready(d)))
	q.Put(dto(3))
	q.Flush()
	assert.Equal(t, [][]uint64{{3}}, contents(ready(d)))
	q.Flush()
	assert.Empty(t, ready(d), "never an empty one")
	evs := []event.Event{*dto(4), *dto(5), *dto(6), *dto(7)}
	q.PutAll(evs)
	assert.Equal(t, [][]uint64{{4, 5, 6}}, contents(ready(d)))
	q.Flush()
	assert.Equal(t, [][]uint64{{7}}, contents(ready(d)))
}

// A completer puts the successes of a run together.
func TestSuccessesThatCompleteTogetherAreBatched(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 32, BatchMax: 3})
	q, source := d.Main(), new(int)
	require.True(t, q.Reserve(7))
	some := make([]event.Event, 7)
	for i := range some {
		Success(&some[i], source, uint64(i), hw.OpSend, uint32(8*i))
	}
	q.PutAll(some)
	full := ready(d)
	assert.Equal(t, [][]uint64{{0, 1, 2}, {3, 4, 5}}, contents(full))
	assert.Equal(t, event.Event{Number: event.DTOCompletion, Op: hw.OpSend, Length: 16, Cookie: 2, Source: source}, full[0].Events()[2])
	q.Flush()
	rest := ready(d)
	assert.Equal(t, [][]uint64{{6}}, contents(rest))
	for _, b := range append(full, rest...) {
		b.Release()
	}
}

// Each kind of dispatcher has the events that Put would put, one after the other.
func TestSuccessesThatCompleteTogetherAreThoseOfEach(t *testing.T) {
	refuse := func(_ any, _ event.Number, _ hw.Status, cookie uint64, _ any) bool { return cookie != 1 }
	for name, c := range map[string]struct {
		kind   *Way
		filter Filter
		want   []uint64
	}{
		"channel":                   {Channel, nil, []uint64{0, 1, 2}},
		"channel, with a filter":    {Channel, refuse, []uint64{0, 2}},
		"in batches, with a filter": {Batches, refuse, []uint64{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: c.kind, QLen: 32})
			d.SetFilter(c.filter)
			q := d.Main()
			require.True(t, q.Reserve(3))
			q.PutAll([]event.Event{*dto(0), *dto(1), *dto(2)})
			q.Flush()
			var got []uint64
			if c.kind == Batches {
				for _, b := range ready(d) {
					got = append(got, cookies(b.Events())...)
					b.Release()
				}
			} else {
				got = received(d.C())
			}
			assert.Equal(t, c.want, got)
			assert.Zero(t, d.main.places.granted()-d.main.places.allDone(), "places")
		})
	}
}

func TestBatchesHaveAMinimum(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(t *testing.T, d *Dispatcher)
		want [][]uint64
	}{
		"one more is too few":                {func(t *testing.T, d *Dispatcher) { put(t, d.Main(), 3) }, [][]uint64{}},
		"as many as it needs":                {func(t *testing.T, d *Dispatcher) { put(t, d.Main(), 3, 4) }, [][]uint64{{1, 2, 3, 4}}},
		"silent ones count but don't notify": {func(t *testing.T, d *Dispatcher) { putSilent(t, d.Main(), 3, 4) }, [][]uint64{{1, 2, 3, 4}}},
		"an error does not wait":             {func(t *testing.T, d *Dispatcher) { putEvent(t, d.Main(), flushed(3), true) }, [][]uint64{{1, 2, 3}}},
		"a connection event does not wait": {
			func(t *testing.T, d *Dispatcher) {
				putEvent(t, d.Main(), &event.Event{Number: event.Broken, Cookie: 3}, false)
			},
			[][]uint64{{1, 2, 3}},
		},
		"when a poster finds no room": {func(t *testing.T, d *Dispatcher) { require.False(t, d.Main().Reserve(16)) }, [][]uint64{{1, 2}}},
		"when the consumer asks":      {func(_ *testing.T, d *Dispatcher) { d.Flush() }, [][]uint64{{1, 2}}},
		"on Close":                    {func(t *testing.T, d *Dispatcher) { require.NoError(t, d.Close()) }, [][]uint64{{1, 2}}},
		"an asynchronous error does not wait": {
			func(_ *testing.T, d *Dispatcher) {
				d.PutAsync(&AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
			},
			[][]uint64{{1, 2, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{Way: Batches, QLen: 16, BatchMin: 4})
			put(t, d.Main(), 1, 2)
			assert.Empty(t, ready(d))
			tc.do(t, d)
			assert.Equal(t, tc.want, contents(ready(d)))
		})
	}
}

func TestMinimumAboveHalfTheQueueHasNoEffect(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 4, BatchMin: 100})
	put(t, d.Main(), 1, 2)
	assert.Equal(t, [][]uint64{{1, 2}}, contents(ready(d)))
}

func TestSilentEventsWaitInTheirBatch(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 8})
	putSilent(t, d.Main(), 1, 2)
	assert.Empty(t, ready(d))
	put(t, d.Main(), 3)
	assert.Equal(t, [][]uint64{{1, 2, 3}}, contents(ready(d)))
	putSilent(t, d.Main(), 4)
	assert.Empty(t, ready(d))
	d.Flush()
	assert.Equal(t, [][]uint64{{4}}, contents(ready(d)))

	full := newDispatcher(t, Config{Way: Batches, QLen: 8})
	putSilent(t, full.Main(), 1, 2, 3, 4)
	assert.Equal(t, [][]uint64{{1, 2, 3, 4}}, contents(ready(full)), "half the queue")
}

func TestASecondReleasePanics(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches})
	put(t, d.Main(), 1)
	b := <-d.Batches()
	b.Release()
	assert.PanicsWithValue(t, "evd: a batch was released twice", b.Release)
	// The first Release gave the places back, and the second did not.
	require.True(t, d.Main().Reserve(8))
	assert.False(t, d.Main().Reserve(1))
	d.Main().Release(8)
}

// A consumer that keeps batches of one event each must not use up all batches: when
// few are left, the batcher fills them, and no event lacks a place.
func TestConsumerThatKeepsBatchesGetsFullerOnes(t *testing.T) {
	const qlen, size = 64, 8
	d := makeDispatcher(Config{Way: Batches, QLen: qlen, BatchMax: size})
	var kept []*Batch
	n := uint64(0)
	for ; d.Main().Reserve(1); n++ {
		d.Main().Put(dto(n))
		d.Main().Flush()
		kept = append(kept, ready(d)...)
	}
	require.EqualValues(t, qlen, n)
	got := 0
	for len(kept) > 0 {
		for _, c := range cookies(kept[0].Events()) {
			require.EqualValues(t, got, c)
			got++
		}
		kept[0].Release()
		kept = append(kept[1:], ready(d)...)
	}
	assert.Equal(t, qlen, got, "what could not go out follows the releases")
}

func TestBatchChannelClosesAfterTheLastEvent(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 8})
	q := d.Main()
	require.True(t, q.Reserve(4))
	q.Put(silenced(dto(1)))
	d.Abort()
	b := <-d.Batches()
	assert.Equal(t, list(1), cookies(b.Events()))
	assert.Empty(t, ready(d))
	assert.False(t, closed(d.Batches()), "three are outstanding")
	q.Put(silenced(dto(2)))
	q.Put(silenced(dto(3)))
	q.Release(1)
	assert.Equal(t, [][]uint64{{2}, {3}}, contents(ready(d)))
	assert.True(t, closed(d.Batches()), "even if no batch is released")
	b.Release()
}

func TestAsyncErrorsNeedNoPlaceInBatches(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 2, BatchMax: 2})
	require.True(t, d.Main().Reserve(2))
	nodes := make([]AsyncNode, 3*asyncRoom)
	for i := range nodes {
		nodes[i].Event = event.Event{Number: event.AsyncEPBroken, Cookie: uint64(i)}
		d.PutAsync(&nodes[i])
	}
	d.Main().PutAll([]event.Event{*dto(1000), {Number: event.DTOCompletion, Cookie: 1001, Status: hw.StatusFlushed}})
	d.Main().Flush()
	seen := map[uint64]int{}
	for bs := ready(d); len(bs) > 0; bs = append(bs[1:], ready(d)...) {
		for _, c := range cookies(bs[0].Events()) {
			seen[c]++
		}
		bs[0].Release()
	}
	assert.Len(t, seen, len(nodes)+2)
	for c, n := range seen {
		assert.Equal(t, 1, n, c)
	}
	require.True(t, d.Main().Reserve(2))
	d.Main().Release(2)
}

// Whatever the size of a batch, the batches have memory for only a few times as
// many events as the dispatcher holds.
func TestTheMemoryOfBatchesIsBoundedByTheLength(t *testing.T) {
	for _, qlen := range []int{1, 100, 10_000} {
		for _, most := range []int{0, 64, 1 << 20} {
			d := newDispatcher(t, Config{Way: Batches, QLen: qlen, BatchMin: 1, BatchMax: most})
			b := d.batcher()
			assert.LessOrEqual(t, len(b.free)*b.size, 2*(qlen+asyncRoom)+(1+spareBatches)*usualBatch, "%d, batches of %d", qlen, most)
			require.True(t, d.Main().Reserve(qlen))
			for c := range uint64(qlen) {
				d.Main().Put(dto(c))
			}
			d.Main().Flush()
			n := uint64(0)
			for n < uint64(qlen) {
				batch := <-d.Batches()
				for _, ev := range batch.Events() {
					require.Equal(t, n, ev.Cookie)
					n++
				}
				batch.Release()
			}
		}
	}
}

// Each place of a batch is counted as free once, however many goroutines release batches.
func TestBatchesAreReleasedBySeveralGoroutines(t *testing.T) {
	const places, releasers = 64, 4
	d := newDispatcher(t, Config{Way: Batches, QLen: places, BatchMax: 1})
	q := d.Main()
	for range attempts() {
		require.True(t, q.Reserve(places), "all places are free")
		for cookie := range uint64(places) {
			q.Put(dto(cookie))
		}
		all := ready(d)
		require.Len(t, all, places)
		var wg sync.WaitGroup
		for i := range releasers {
			wg.Go(func() {
				for ; i < len(all); i += releasers {
					all[i].Release()
				}
			})
		}
		wg.Wait()
	}
}

// A batch that is below the minimum takes no lock when its producer flushes.
func TestAFlushThatSendsNothingIsNotDue(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 64, BatchMin: 4})
	q := d.Main()
	b := q.Sink().(*Batcher)
	require.True(t, q.Reserve(8))
	for _, step := range []struct {
		ev  *event.Event
		due bool
	}{{dto(1), false}, {dto(2), false}, {dto(3), false}, {dto(4), true}, {dto(5), false}, {flushed(6), true}} {
		q.PutAll([]event.Event{*step.ev})
		assert.Equal(t, step.due, b.notice.due(), step.ev.Cookie)
		q.Flush()
	}
	q.Put(dto(7))
	assert.False(t, b.notice.due())
	q.Put(flushed(8))
	assert.True(t, b.notice.due())
	q.Flush()
	all := ready(d)
	require.Len(t, all, 3)
	assert.Equal(t, list(1, 2, 3, 4), cookies(all[0].Events()))
	assert.Equal(t, list(5, 6), cookies(all[1].Events()))
	assert.Equal(t, list(7, 8), cookies(all[2].Events()))
	for _, batch := range all {
		batch.Release()
	}
}

// lastOne is a last event.
var lastOne = event.Event{Number: event.Closed, Cookie: 99}

func TestAChannelThatStaysOpenEndsWithItsLastEvent(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel, QLen: 4})
	d.EndWith(lastOne)
	q := d.Main()
	require.True(t, q.Reserve(3))
	q.Put(silenced(dto(1))) // held
	d.Abort()
	assert.Equal(t, list(1), received(d.C()), "two are outstanding")
	q.Put(dto(2))
	q.Release(1)
	require.NoError(t, d.Close())
	assert.Equal(t, list(2, 99), received(d.C()))
	assert.False(t, closed(d.C()), "a select with it sleeps")
}

// The channel may be as full as it gets when its last event comes.
func TestTheLastEventHasAPlaceOfItsOwn(t *testing.T) {
	d := newDispatcher(t, Config{Way: Channel, QLen: 4})
	d.EndWith(lastOne)
	n := 0
	for d.Main().Reserve(1) {
		d.Main().Put(dto(1))
		n++
	}
	nodes := make([]AsyncNode, 2*asyncRoom)
	for i := range nodes {
		nodes[i].Event = event.Event{Number: event.AsyncEPBroken}
		d.PutAsync(&nodes[i])
	}
	require.Equal(t, cap(d.C())-1, len(d.C()))
	d.Abort()
	got := received(d.C())
	assert.Equal(t, uint64(99), got[len(got)-1])
	assert.Len(t, got, n+asyncRoom+1)
}

func TestBatchesThatStayOpenEndWithTheLastEventAlone(t *testing.T) {
	d := newDispatcher(t, Config{Way: Batches, QLen: 8, BatchMax: 3})
	d.EndWith(lastOne)
	q := d.Main()
	require.True(t, q.Reserve(8))
	for i := range uint64(8) {
		q.Put(dto(i))
		q.Flush()
	}
	nodes := make([]AsyncNode, asyncRoom)
	for i := range nodes {
		nodes[i].Event = event.Event{Number: event.AsyncEPBroken}
		d.PutAsync(&nodes[i])
	}
	out := ready(d)
	require.Len(t, out, len(d.batcher().All()), "the program has all batches")
	d.Abort()
	assert.Empty(t, ready(d), "no batch is free")
	for i, b := range out {
		b.Release()
		if i == 0 {
			last := ready(d)
			require.Equal(t, [][]uint64{{99}}, contents(last))
			last[0].Release()
		}
	}
	assert.Empty(t, ready(d), "the last event comes once")
	assert.False(t, closed(d.Batches()))
}

// More listed events than batches take at a time may wait when the dispatcher closes.
func TestWhatIsListedBehindTheEndOfBatchesStaysThere(t *testing.T) {
	for name, last := range map[string]*event.Event{"the channel closes": nil, "the channel stays open": &lastOne} {
		for when, first := range map[string]func(*Dispatcher){
			"before": func(d *Dispatcher) { ask(d, asyncRoom+1) },
			"beside": func(*Dispatcher) {}, // the lister has seen the dispatcher open
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				d := newDispatcher(t, Config{Way: Batches, QLen: 64})
				d.last = last
				first(d)
				require.NoError(t, d.Close())
				d.async.push(&d.async.errors, &AsyncNode{Event: event.Event{Number: event.AsyncEPBroken}})
				d.main.takeListed()
				out := ready(d)
				came := contents(out)
				for _, b := range out {
					b.Release()
				}
				if last == nil {
					assert.True(t, closed(d.Batches()))
					return
				}
				require.NotEmpty(t, came)
				assert.Equal(t, list(lastOne.Cookie), came[len(came)-1])
				assert.Empty(t, ready(d), "something came behind the last event")
			})
		}
	}
}
