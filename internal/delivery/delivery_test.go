package delivery

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/hw/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

// attempts is how many rounds a test runs whose outcome depends on which goroutine is
// first.
func attempts() uint64 {
	if testing.Short() {
		return 300
	}
	return 2000
}

const allStreams = event.DefaultStreams | event.StreamSoftware

// public stands for the evd.Dispatcher in front of a dispatcher.
type public struct {
	way     *Way
	batches chan *Batch
	shots   Shots
}

func (*public) String() string { return "the dispatcher" }

// newDispatcher makes a dispatcher for 8 events unless cfg says otherwise.
func newDispatcher(t testing.TB, cfg Config) *Dispatcher {
	t.Helper()
	d := makeDispatcher(cfg)
	t.Cleanup(d.Abort)
	return d
}

// makeDispatcher is newDispatcher for a test that closes it.
func makeDispatcher(cfg Config) *Dispatcher {
	if cfg.QLen == 0 {
		cfg.QLen = 8
	}
	if cfg.ResizeMax == 0 {
		cfg.ResizeMax = cfg.MaxLen
		if cfg.MaxLen == 0 && (cfg.Way == nil || cfg.Way.Grows) {
			cfg.ResizeMax = 1 << 20
		}
	}
	if cfg.MaxLen == 0 {
		cfg.MaxLen = cfg.QLen
	}
	if cfg.Streams == 0 {
		cfg.Streams = event.DefaultStreams
	}
	if cfg.BatchMax == 0 {
		cfg.BatchMax = max(usualBatch, cfg.BatchMin)
	}
	if cfg.BatchMin == 0 {
		cfg.BatchMin = 1
	}
	if cfg.Way == Callback && cfg.Callback == nil {
		cfg.Callback = func([]event.Event) {}
	}
	cfg.Closing = func() {}
	if cfg.Way == nil {
		cfg.Way = Ring
	}
	p := &public{way: cfg.Way}
	cfg.Public = p
	d := new(Dispatcher)
	d.Init(&cfg)
	if cfg.Way == Batches {
		p.batches = make(chan *Batch, len(d.batcher().All()))
		d.batcher().SendTo(func(b *Batch) { p.batches <- b }, func() { close(p.batches) })
	}
	return d
}

// way is how the dispatcher delivers.
func (d *Dispatcher) way() *Way { return d.public.(*public).way }

func (d *Dispatcher) batcher() *Batcher { return d.Sink().(*Batcher) }

// Batches is where the tests receive batches.
func (d *Dispatcher) Batches() <-chan *Batch { return d.public.(*public).batches }

// Route makes a route.
func (d *Dispatcher) Route(mask, value uint64, qlen int) (*Route, error) {
	r := new(Route)
	if !d.AddRoute(r, mask, value, qlen) {
		return nil, InvalidHandle("evd.Route")
	}
	return r, nil
}

// NewOneShot takes a OneShot from the pool, or makes one.
func (d *Dispatcher) NewOneShot() *OneShot {
	if s, ok := d.public.(*public).shots.Take().(*OneShot); ok {
		return s
	}
	s := new(OneShot)
	s.Init(d, &d.public.(*public).shots, s)
	return s
}

// Events iterates over the events, of whatever kind d is.
func (d *Dispatcher) Events(ctx context.Context) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		switch d.way() {
		case Ring:
			d.Consumer().Iterate(ctx, yield)
		case Channel:
			for ev := range untilDone(ctx, d.C()) {
				if !yield(ev) {
					return
				}
			}
		case Batches:
			for b := range untilDone(ctx, d.Batches()) {
				for _, ev := range b.Events() {
					if !yield(ev) {
						b.Release()
						return
					}
				}
				b.Release()
			}
		default: // the callback gets them
		}
	}
}

// untilDone receives until the context ends.
func untilDone[T any](ctx context.Context, ch <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			select {
			case v, ok := <-ch:
				if !ok || !yield(v) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func dto(cookie uint64) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Cookie: cookie}
}

func flushed(cookie uint64) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Cookie: cookie, Status: hw.StatusFlushed}
}

// put delivers events that notify, one by one.
func put(t testing.TB, q *Queue, cookies ...uint64) {
	t.Helper()
	for _, c := range cookies {
		putEvent(t, q, dto(c), false)
	}
}

// putSilent delivers events that do not notify.
func putSilent(t testing.TB, q *Queue, cookies ...uint64) {
	t.Helper()
	for _, c := range cookies {
		putEvent(t, q, dto(c), true)
	}
}

func silenced(ev *event.Event) *event.Event {
	ev.Flags |= event.Silent
	return ev
}

func putEvent(t testing.TB, q *Queue, ev *event.Event, silent bool) {
	t.Helper()
	require.True(t, q.Reserve(1))
	if silent {
		ev = silenced(ev)
	}
	q.Put(ev)
	q.Flush()
}

// drain takes all events that Dequeue finds.
func drain(t testing.TB, d *Dispatcher) []uint64 {
	t.Helper()
	buf := make([]event.Event, 1<<12)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	return cookies(buf[:n])
}

// received takes what is in the channel.
func received(ch <-chan event.Event) []uint64 {
	var evs []event.Event
	for {
		select {
		case ev, ok := <-ch:
			if ok {
				evs = append(evs, ev)
				continue
			}
		default:
		}
		return cookies(evs)
	}
}

func cookies(evs []event.Event) []uint64 {
	cs := make([]uint64, len(evs))
	for i, ev := range evs {
		cs[i] = ev.Cookie
	}
	return cs
}

func list(cookies ...uint64) []uint64 { return append([]uint64{}, cookies...) }

// isError checks an error's type and subtype.
func isError(t testing.TB, err error, typ hw.Type, sub hw.Subtype, msg ...any) {
	t.Helper()
	var e *hw.Error
	if assert.ErrorAs(t, err, &e, msg...) {
		assert.Equal(t, typ, e.Type, msg...)
		assert.Equal(t, sub, e.Sub, msg...)
		assert.Contains(t, e.Op, "evd.", msg...)
	}
}

// eventually waits until another goroutine has made cond true.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, time.Minute, 50*time.Microsecond, what)
}

// closed reports whether a channel is closed and empty.
func closed[T any](ch <-chan T) bool {
	select {
	case _, ok := <-ch:
		return !ok
	default:
		return false
	}
}

// sleeping reports whether a goroutine sleeps in Wait or in an iterator.
func sleeping(d *Dispatcher) bool { return d.main.consumer.parked.Load() != 0 }

var allModes = []*Way{Ring, Channel, Batches, Callback}

// waitOne is Wait that returns the event.
func waitOne(d *Dispatcher, ctx context.Context, threshold int) (event.Event, int, error) { //nolint:revive // as Wait has them
	var one [1]event.Event
	nmore, err := d.Consumer().Wait(ctx, threshold, &one)
	return one[0], nmore, err
}
