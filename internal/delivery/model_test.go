package delivery

import (
	"slices"
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
)

// world is a dispatcher and the events that it should hold, as plain lists.
type world struct {
	d    *Dispatcher
	q    *Queue
	mode *Way

	limit    int // what Reserve admits against
	qlen     int
	granted  int      // reserved, neither put nor released
	unseen   []uint64 // put, and silent so far: held in Channel
	queued   []uint64 // put, and the consumer's to take
	unfree   []uint64 // received in a batch that is not released
	batches  []*Batch
	asyncs   map[uint64]*AsyncNode
	listed   []uint64 // asynchronous errors that wait until a batch is released
	next     uint64
	closed   bool
	batchMax int
	batchMin int
}

const asyncCookie = 1 << 40

// errs counts the asynchronous errors that the consumer has not taken or not
// released.
func (w *world) errs() (n int) {
	for _, cs := range [][]uint64{w.unseen, w.queued, w.unfree} {
		for _, c := range cs {
			if c >= asyncCookie {
				n++
			}
		}
	}
	return n
}

// used counts the places that are taken. In a channel errors take places, too.
func (w *world) used() int {
	n := w.granted + len(w.unseen) + len(w.queued) + len(w.unfree)
	if w.mode != Channel {
		n -= w.errs()
	}
	return n
}

func newWorld(t *rapid.T, mode *Way) *world {
	w := &world{mode: mode, asyncs: map[uint64]*AsyncNode{}}
	w.qlen = rapid.IntRange(1, 20).Draw(t, "qlen")
	w.batchMin = rapid.IntRange(1, 6).Draw(t, "batchMin")
	w.batchMax = w.batchMin + rapid.IntRange(0, 6).Draw(t, "more")
	w.d = makeDispatcher(Config{
		Way: mode, QLen: w.qlen, MaxLen: 24, BatchMin: w.batchMin, BatchMax: w.batchMax,
	})
	w.q = w.d.Main()
	w.setLimit(w.qlen)
	return w
}

func (w *world) setLimit(qlen int) {
	w.qlen, w.limit = qlen, qlen
	if w.mode == Channel {
		w.limit += ofMany.slack()
	}
}

// show makes the silent events visible, as any call does that brings them out.
func (w *world) show() {
	w.queued = append(w.queued, w.unseen...)
	w.unseen = nil
}

func (w *world) reserve(t *rapid.T) {
	n := rapid.IntRange(1, 6).Draw(t, "n")
	if rapid.IntRange(0, 9).Draw(t, "all") == 0 {
		n = max(1, w.limit-w.used())
	}
	want := !w.closed && w.used()+n <= w.limit
	if got := w.q.Reserve(n); got != want {
		t.Fatalf("reserved %v, want %v: %d + %d of %d", got, want, w.used(), n, w.limit)
	}
	if want {
		w.granted += n
	} else if !w.closed {
		w.show()
	}
}

func (w *world) release(t *rapid.T) {
	if w.granted > 0 {
		n := rapid.IntRange(1, w.granted).Draw(t, "n")
		w.q.Release(n)
		w.granted -= n
	}
}

// event draws an event, and reports whether it is silent in the end.
func (w *world) event(t *rapid.T) (ev event.Event, silent bool) {
	ev = event.Event{Number: event.DTOCompletion, Cookie: w.next}
	w.next++
	if rapid.Bool().Draw(t, "silent") {
		ev.Flags |= event.Silent
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		ev.Status = hw.StatusFlushed
	case 1:
		ev.Number = event.Disconnected
	}
	return ev, ev.Flags&event.Silent != 0 && ev.Status == 0 && ev.Number == event.DTOCompletion
}

func (w *world) put(t *rapid.T) {
	if w.granted == 0 {
		return
	}
	n := rapid.IntRange(1, min(4, w.granted)).Draw(t, "n")
	evs := make([]event.Event, n)
	for i := range evs {
		var silent bool
		evs[i], silent = w.event(t)
		w.unseen = append(w.unseen, evs[i].Cookie)
		if !silent || w.mode == Ring || w.closed || len(w.unseen) >= max(1, w.qlen/2) {
			w.show()
		}
	}
	w.granted -= n
	if rapid.Bool().Draw(t, "together") {
		w.q.PutAll(evs)
	} else {
		for i := range evs {
			w.q.Put(&evs[i])
		}
	}
	w.q.Flush()
}

func (w *world) async(t *rapid.T) {
	w.report(asyncCookie + rapid.Uint64Range(0, 3).Draw(t, "node"))
}

// flood reports more errors than batches take at a time.
func (w *world) flood(*rapid.T) {
	for node := range uint64(asyncRoom + 2) {
		w.report(asyncCookie + node)
	}
}

// report reports one asynchronous error.
func (w *world) report(c uint64) {
	if w.closed {
		return
	}
	if w.mode == Channel && !w.q.channel.mayList() {
		return // it would wait until the consumer has received more
	}
	node := w.asyncs[c]
	if node == nil {
		node = &AsyncNode{Event: event.Event{Number: event.AsyncEPBroken, Cookie: c}}
		w.asyncs[c] = node
	}
	w.d.PutAsync(node)
	if w.mode == Ring {
		// Errors come first, and each only once.
		i := 0
		for ; i < len(w.queued) && w.queued[i] >= asyncCookie; i++ {
			if w.queued[i] == c {
				return
			}
		}
		w.queued = slices.Insert(w.queued, i, c)
		return
	}
	if w.mode == Batches {
		if !slices.Contains(w.listed, c) { // each waits once
			w.listed = append(w.listed, c)
			w.takeListed()
		}
		return
	}
	w.unseen = append(w.unseen, c)
	w.show()
}

// takeListed moves listed errors into batches. Behind the end they stay where they are.
func (w *world) takeListed() {
	for len(w.listed) > 0 && w.errs() < asyncRoom {
		w.unseen = append(w.unseen, w.listed[0])
		w.listed = w.listed[1:]
		w.show()
	}
}

func (w *world) resize(t *rapid.T) {
	n := rapid.IntRange(1, 24).Draw(t, "qlen")
	err := w.d.Resize(n)
	switch {
	case w.closed:
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	case w.mode != Ring && n < len(w.unseen)+len(w.queued)+len(w.unfree):
		require.ErrorIs(t, err, hw.ErrInvalidState)
	case err == nil:
		w.setLimit(n)
	default:
		require.ErrorIs(t, err, hw.ErrInvalidState)
		require.Less(t, n, len(w.queued))
	}
}

func (w *world) flush(*rapid.T) {
	w.d.Flush()
	w.show()
}

func (w *world) close(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
		err := w.d.Close()
		if w.mode == Ring && w.granted > 0 && !w.closed {
			require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEVDInUse})
			return
		}
		require.NoError(t, err)
		w.closed = true
		w.show()
	}
}

func (w *world) dequeue(t *rapid.T) {
	buf := make([]event.Event, rapid.IntRange(0, 8).Draw(t, "n"))
	n, err := w.d.Dequeue(buf)
	if w.closed {
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		return
	}
	require.NoError(t, err)
	want := w.queued[:min(len(buf), len(w.queued))]
	require.Equal(t, append(list(), want...), cookies(buf[:n]))
	w.queued = w.queued[n:]
}

func (w *world) wait(t *rapid.T) {
	threshold := rapid.IntRange(1, w.qlen).Draw(t, "threshold")
	ev, nmore, err := waitOne(w.d, expired(), threshold)
	switch {
	case w.closed:
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	case len(w.queued) >= threshold:
		require.NoError(t, err)
		require.Equal(t, w.queued[0], ev.Cookie)
		w.queued = w.queued[1:]
		require.Equal(t, len(w.queued), nmore)
	default:
		require.ErrorIs(t, err, hw.ErrTimeout)
		require.Equal(t, len(w.queued), nmore)
	}
}

// TestQueueAgreesWithAList covers Reserve to Dequeue and Wait.
func TestQueueAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, Ring)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": w.reserve, "release": w.release, "put": w.put, "async": w.async,
			"dequeue": w.dequeue, "wait": w.wait, "resize": w.resize, "flush": w.flush, "close": w.close,
		})
	})
}

func (w *world) receive(t *rapid.T) {
	n := rapid.IntRange(1, 8).Draw(t, "n")
	for range min(n, len(w.queued)) {
		select {
		case ev, ok := <-w.d.C():
			require.True(t, ok)
			require.Equal(t, w.queued[0], ev.Cookie)
		default:
			t.Fatalf("%d events are not there", len(w.queued))
		}
		w.queued = w.queued[1:]
	}
	if len(w.queued) == 0 {
		select {
		case ev, ok := <-w.d.C():
			require.False(t, ok, "event %d", ev.Cookie)
			require.True(t, w.closed && w.granted == 0)
		default:
			require.False(t, w.closed && w.granted == 0, "not closed")
		}
	}
}

// TestChannelAgreesWithAList covers which events are held back, and when the
// channel closes.
func TestChannelAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, Channel)
		async := func(t *rapid.T) {
			// The channel can't tell whether an error was received, so an error
			// waits when there is no room for it: report one only while there is
			// room.
			if w.used() < w.limit {
				w.async(t)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": w.reserve, "release": w.release, "put": w.put, "async": async,
			"receive": w.receive, "resize": w.resize, "flush": w.flush, "close": w.close,
		})
	})
}

func (w *world) receiveBatch(t *rapid.T) {
	select {
	case b, ok := <-w.d.Batches():
		if !ok {
			require.True(t, w.closed && w.granted == 0)
			require.Empty(t, w.queued)
			return
		}
		evs := b.Events()
		require.NotEmpty(t, evs)
		require.LessOrEqual(t, len(evs), w.batchMax)
		// Silent events may come with those that notify, if there is room.
		all := append(append(list(), w.queued...), w.unseen...)
		require.LessOrEqual(t, len(evs), len(all))
		require.Equal(t, all[:len(evs)], cookies(evs))
		n := min(len(evs), len(w.queued))
		w.unseen = w.unseen[len(evs)-n:]
		w.queued = w.queued[n:]
		w.unfree = append(w.unfree, cookies(evs)...)
		w.batches = append(w.batches, b)
	default:
	}
}

func (w *world) releaseBatch(t *rapid.T) {
	if len(w.batches) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.batches)-1).Draw(t, "batch")
	b := w.batches[i]
	for _, c := range cookies(b.Events()) {
		w.unfree = slices.Delete(w.unfree, slices.Index(w.unfree, c), slices.Index(w.unfree, c)+1)
	}
	ended := w.q.Sink().(*Batcher).ended
	b.Release()
	if !ended {
		w.takeListed()
	}
	w.batches = slices.Delete(w.batches, i, i+1)
	require.Panics(t, b.Release)
}

// check demands that a batch is visible if it should be, as long as the consumer
// keeps none.
func (w *world) check(t *rapid.T) {
	if len(w.batches) > 0 {
		return
	}
	b := w.q.Sink().(*Batcher)
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := 0
	if b.cur != nil {
		pending = len(b.cur.evs)
	}
	if len(w.d.Batches()) == 0 && pending >= w.batchMin && len(w.queued) > 0 {
		t.Fatalf("%d events in a batch that does not go out", pending)
	}
}

// TestBatchesAgreeWithAList covers order, places, sizes and recycling.
func TestBatchesAgreeWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, Batches)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": w.reserve, "release": w.release, "put": w.put, "async": w.async, "flood": w.flood,
			"receive": w.receiveBatch, "receive more": w.receiveBatch, "release batch": w.releaseBatch,
			"resize": w.resize, "flush": w.flush, "close": w.close, "": w.check,
		})
		// In the end everything that was put comes out.
		w.flush(t)
		for range 1000 {
			w.receiveBatch(t)
			w.releaseBatch(t)
		}
		require.Empty(t, w.queued)
		require.Empty(t, w.unfree)
		if w.closed {
			w.q.Release(w.granted)
			require.True(t, closed(w.d.Batches()))
		}
	})
}
