package evd

import "godat/internal/delivery"

// A Batch is a run of events, in order. It is the receiver's from the receive
// to Release, which gives it and the places of its events back.
type Batch struct{ inner *delivery.Batch }

// Events are the batch's events, at least one. They may not be used after Release.
func (b *Batch) Events() []Event {
	if b == nil {
		return nil
	}
	return b.inner.Events()
}

// Release gives the batch back; it panics the second time. Any goroutine may
// call it. On nil it does nothing.
func (b *Batch) Release() {
	if b != nil {
		b.inner.Release()
	}
}

func (b *Batch) each(yield func(Event) bool) bool {
	defer b.Release()
	for _, ev := range b.Events() {
		if !yield(ev) {
			return false
		}
	}
	return true
}

// Batches is the channel of batches, in ModeBatch; nil otherwise. It is closed
// when the dispatcher was closed and the last batch is in it. Who receives a
// batch releases it, soon: a few that are not hold up the rest.
func (d *Dispatcher) Batches() <-chan *Batch {
	if d == nil {
		return nil
	}
	return d.batches
}

// makeBatches makes the channel, and what goes into it for each batch behind it. The
// channel holds all batches, so that sending never blocks.
func (d *Dispatcher) makeBatches() {
	inner := d.inner.AllBatches()
	all := make([]Batch, len(inner))
	for i := range inner {
		all[i].inner = &inner[i]
	}
	ch := make(chan *Batch, len(all))
	d.inner.SendBatches(func(b *delivery.Batch) { ch <- &all[b.Index] }, func() { close(ch) })
	d.batches = ch
}
