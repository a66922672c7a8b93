package ep

import (
	"sync/atomic"

	"godat/evd"
	"godat/hw/event"
	"godat/internal/delivery"
)

// watermarks bound the receives that an endpoint has taken from a shared queue and
// not completed.
type watermarks struct {
	soft, hard atomic.Int64        // NoWatermark: none
	full       *delivery.AsyncNode // the event that soft was exceeded; made with the first soft
}

// setSoft sets the soft watermark of an endpoint, the source. The caller holds its ctl, or is still making it.
func (w *watermarks) setSoft(source any, soft int) {
	if w.full == nil && soft != NoWatermark {
		w.full = &delivery.AsyncNode{Event: event.Event{Number: event.AsyncEPBroken, Source: source, Data: event.EPSoftHighWatermark}}
	}
	w.soft.Store(int64(soft))
}

// taken checks n, the receives taken and not completed, against the watermarks, and
// reports whether n exceeds the hard one.
func (w *watermarks) taken(async *evd.Dispatcher, n int) (overrun bool) {
	if soft := w.soft.Load(); soft != NoWatermark && int64(n) > soft && w.soft.CompareAndSwap(soft, NoWatermark) {
		wiring(async).PutAsync(w.full)
	}
	hard := w.hard.Load()
	return hard != NoWatermark && int64(n) > hard
}
