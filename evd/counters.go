package evd

// Counters say what happened on a dispatcher since it was made or its counters were
// reset: DAT_EVD_COUNTERS. Delivery does not pay for Events and Taken: they are
// derived from the positions of the queue. Events of routes and one-shots have
// places of their own and are not counted.
type Counters struct {
	Events uint64 // events that came
	Taken  uint64 // events that the consumer took; of a channel: events sent that are not in it any more
	Lost   uint64 // events that found no room, of an over-committed dispatcher; not among Events
	Sleeps uint64 // how often a goroutine in Wait or in an iterator slept, having found too few events
}

// Counters returns the counters. While events come and go, the numbers are from
// about the same time. On a closed dispatcher it returns INVALID_HANDLE. It answers
// to dat_ib_query_counters, for an event dispatcher.
func (d *Dispatcher) Counters() (Counters, error) { return d.counters("evd.Counters", false) }

// ResetCounters returns the counters as Counters does, and makes them count from 0
// again.
func (d *Dispatcher) ResetCounters() (Counters, error) { return d.counters("evd.ResetCounters", true) }

func (d *Dispatcher) counters(op string, reset bool) (Counters, error) {
	if d.closed() {
		return Counters{}, invalidHandle(op)
	}
	return Counters(d.inner.Counters(reset)), nil
}
