package evd

// Counters say what has happened on a dispatcher since it was made, or its
// counters were reset: DAT_EVD_COUNTERS. They are no measurement that delivery pays
// for: they follow from where its queue is. Events of routes and one-shots have
// places of their own and are not among them.
type Counters struct {
	Events uint64 // that came
	Taken  uint64 // that the consumer got; of a channel: that are not in it any more
	Lost   uint64 // that found no room, of an over-committed dispatcher; not among Events
	Sleeps uint64 // of goroutines in Wait that found too few events
}

// Counters tells what has happened. While events come and go, the numbers are from
// about the same time. A closed dispatcher is INVALID_HANDLE.
// It answers to dat_ib_query_counters, for an event dispatcher.
func (d *Dispatcher) Counters() (Counters, error) { return d.counters("evd.Counters", false) }

// ResetCounters is Counters, which from then on count from 0.
func (d *Dispatcher) ResetCounters() (Counters, error) { return d.counters("evd.ResetCounters", true) }

func (d *Dispatcher) counters(op string, reset bool) (Counters, error) {
	if d.closed() {
		return Counters{}, invalidHandle(op)
	}
	return Counters(d.inner.Counters(reset)), nil
}
