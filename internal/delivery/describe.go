package delivery

import "fmt"

// Places returns how many places of the queue are reserved and how many there are,
// for messages: both numbers may be out of date at once.
func (q *Queue) Places() (reserved, limit uint64) {
	freed := q.freed(q.places.allDone())
	r := q.places.granted()
	return r - min(freed, r), q.places.limit.Load()
}

// Name returns the name of the queue's route, OneShot or dispatcher.
func (q *Queue) Name() string {
	if q.channel.name != nil {
		return q.channel.name.String()
	}
	if s, ok := q.sink.(fmt.Stringer); ok {
		return s.String()
	}
	return q.d.public.String()
}

// Full reports whether every place is reserved or has an event in it. It counts the
// free places afresh only if the queue was full by the last one.
func (q *Queue) Full() bool {
	if q.placeless {
		return false
	}
	p := &q.places
	limit := p.limit.Load()
	return p.reserved.Load()-p.seen.Load() >= limit && p.reserved.Load()-q.freed(p.allDone()) >= limit
}
