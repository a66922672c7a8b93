package evd

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

// newDispatcher makes a dispatcher for 8 events unless cfg says otherwise.
func newDispatcher(t testing.TB, cfg Config) *Dispatcher {
	t.Helper()
	if cfg.QLen == 0 {
		cfg.QLen = 8
	}
	d, err := New(called(cfg))
	require.NoError(t, err)
	t.Cleanup(d.inner.Abort)
	return d
}

// called gives a configuration of ModeCallback a callback.
func called(cfg Config) Config {
	if cfg.Mode == ModeCallback && cfg.Callback == nil {
		cfg.Callback = func([]event.Event) {}
	}
	return cfg
}

func dto(cookie uint64) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Cookie: cookie}
}

func flushed(cookie uint64) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Cookie: cookie, Status: hw.StatusFlushed}
}

// put delivers events that notify, one by one.
func put(t testing.TB, q *delivery.Queue, cookies ...uint64) {
	t.Helper()
	for _, c := range cookies {
		putEvent(t, q, dto(c), false)
	}
}

// putSilent delivers events that do not notify.
func putSilent(t testing.TB, q *delivery.Queue, cookies ...uint64) {
	t.Helper()
	for _, c := range cookies {
		putEvent(t, q, dto(c), true)
	}
}

func silenced(ev *event.Event) *event.Event {
	ev.Flags |= event.Silent
	return ev
}

func putEvent(t testing.TB, q *delivery.Queue, ev *event.Event, silent bool) {
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
	buf := make([]event.Event, MaxQLen>>8)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	return cookies(buf[:n])
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

// slack is how many events a channel holds beyond its length; see Config.QLen.
const slack = 80

func newRoute(t testing.TB, d *Dispatcher, mask, value uint64, qlen int) *Route {
	t.Helper()
	r, err := d.Route(mask, value, qlen)
	require.NoError(t, err)
	return r
}

func asyncNode(cookie uint64) *delivery.AsyncNode {
	return &delivery.AsyncNode{Event: event.Event{Number: event.AsyncEPBroken, Cookie: cookie, Data: event.ReasonOther}}
}

func expired() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	cancel()
	return ctx
}

// atEach runs f with some numbers of processors.
func atEach(t *testing.T, f func(t *testing.T)) {
	for _, p := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", p), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
			f(t)
		})
	}
}
