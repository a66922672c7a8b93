package delivery

import "time"

// Snapshot describes a dispatcher at one moment; see evd.DispatcherSnapshot.
type Snapshot struct {
	Counters
	Refused                uint64
	QLen, Reserved, Queued int
	Waiters                int
	OldestAge              time.Duration
	CallbackAge            time.Duration
	Owner                  any // the source of the last event; nil without EndWith
}

// look is when somebody who looked first saw the event that is the oldest, and the callback
// that runs. Delivery reads no clock, so nothing else tells how old they are.
type look struct {
	oldest, callback     uint64 // how many events were taken and how many callbacks began before
	oldestAt, callbackAt time.Time
}

// since returns how long ago a look first saw that number, and notes it if it is new.
func (l *look) since(now time.Time, number uint64, seen *uint64, at *time.Time) time.Duration {
	if at.IsZero() || *seen != number {
		*seen, *at = number, now
	}
	return now.Sub(*at)
}

// Snapshot describes the dispatcher now. It disturbs no consumer and no producer.
func (d *Dispatcher) Snapshot() (s Snapshot) {
	q := &d.main
	d.tally.mu.Lock()
	defer d.tally.mu.Unlock()
	s.Counters = d.counters()
	s.Refused = q.places.refused.Load()
	reserved, limit := q.Places()
	s.Reserved, s.QLen = int(reserved), int(limit)
	s.Queued = int(since(s.Events, s.Taken))
	if last := d.last; last != nil {
		s.Owner = last.Source
	}
	if t := &q.consumer.turn; t.kind() == turnWaiter || t.kind() == turnIterator {
		s.Waiters = 1 + int(t.queued.Load())
	}
	now := time.Now()
	l := &d.tally.look
	if s.Queued > 0 {
		s.OldestAge = l.since(now, s.Taken, &l.oldest, &l.oldestAt)
	} else {
		l.oldestAt = time.Time{}
	}
	if d.calls != nil {
		if n := d.calls.began(); n%2 == 1 {
			s.CallbackAge = l.since(now, n, &l.callback, &l.callbackAt)
		}
	}
	return s
}
