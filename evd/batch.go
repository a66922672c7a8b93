package evd

import (
	"godat/hw/event"
	"godat/internal/delivery"
)

// A Batch is a run of events in order. Its receiver owns it until Release returns
// the batch, and the places of its events, to the dispatcher.
type Batch struct{ inner *delivery.Batch }

// Events returns the batch's events, at least one. The slice is valid until
// Release.
func (b *Batch) Events() []event.Event {
	if b == nil {
		return nil
	}
	return b.inner.Events()
}

// Release returns the batch to the dispatcher. A second call panics unless the
// dispatcher has sent the batch again by then. Any goroutine may call it. On nil it
// does nothing.
func (b *Batch) Release() {
	if b != nil {
		b.inner.Release()
	}
}

func (b *Batch) each(yield func(event.Event) bool) bool {
	defer b.Release()
	for _, ev := range b.Events() {
		if !yield(ev) {
			return false
		}
	}
	return true
}

// Batches is the channel of batches in ModeBatch, and nil in other modes. After
// Close, the dispatcher closes the channel once it has sent the last batch. The
// receiver of a batch releases it soon: a few batches that are not released delay
// the events that follow.
func (d *Dispatcher) Batches() <-chan *Batch {
	if d == nil {
		return nil
	}
	return d.batches
}

// makeBatches makes the channel, and one Batch for each batch of the inner
// dispatcher. The channel has room for all of them, so a send never blocks.
func (d *Dispatcher) makeBatches() {
	from := d.inner.Sink().(*delivery.Batcher)
	inner := from.All()
	all := make([]Batch, len(inner))
	for i := range inner {
		all[i].inner = &inner[i]
	}
	ch := make(chan *Batch, len(all))
	from.SendTo(func(b *delivery.Batch) { ch <- &all[b.Index] }, func() { close(ch) })
	d.batches = ch
}
