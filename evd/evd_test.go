package evd

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

// newDispatcher makes a dispatcher for 8 events unless cfg says otherwise.
func newDispatcher(t testing.TB, cfg Config) *Dispatcher {
	t.Helper()
	if cfg.QLen == 0 {
		cfg.QLen = 8
	}
	if cfg.Mode == ModeCallback && cfg.Callback == nil {
		cfg.Callback = func([]Event) {}
	}
	d, err := New(cfg)
	require.NoError(t, err)
	t.Cleanup(d.Abort)
	return d
}

func dto(cookie uint64) *Event { return &Event{Number: DTOCompletion, Cookie: cookie} }

func flushed(cookie uint64) *Event {
	return &Event{Number: DTOCompletion, Cookie: cookie, Status: hw.StatusFlushed}
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

func putEvent(t testing.TB, q *Queue, ev *Event, silent bool) {
	t.Helper()
	require.True(t, q.Reserve(1))
	q.Put(ev, silent)
	q.Flush()
}

// drain takes what the consumer of ModeQueue can have.
func drain(t testing.TB, d *Dispatcher) []uint64 {
	t.Helper()
	buf := make([]Event, MaxQLen>>8)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	return cookies(buf[:n])
}

// received takes what is in the channel.
func received(ch <-chan Event) []uint64 {
	var evs []Event
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

func cookies(evs []Event) []uint64 {
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

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, 50*time.Microsecond, what)
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

// sleeping reports whether somebody sleeps in Wait or in an iterator.
func sleeping(d *Dispatcher) bool { return d.main.parked.Load() != 0 }
