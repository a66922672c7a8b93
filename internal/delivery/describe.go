package delivery

import "fmt"

// Places returns how many places of the queue are reserved and how many there are,
// for messages: both numbers may be out of date at once.
func (q *Queue) Places() (reserved, limit uint64) {
	freed := q.freed(q.done.Load())
	r := q.reserved.Load() &^ closedBit
	return r - min(freed, r), q.limit.Load()
}

// Name returns the name of the queue's route, OneShot or dispatcher.
func (q *Queue) Name() string {
	switch {
	case q.route != nil:
		return q.route.String()
	case q.shot != nil:
		return q.shot.String()
	}
	return q.d.public.String()
}

// Full reports whether every place is reserved or has an event in it. It counts the
// free places afresh only if the queue was full by the last one.
func (q *Queue) Full() bool {
	limit := q.limit.Load()
	return q.reserved.Load()-q.seen.Load() >= limit && q.reserved.Load()-q.freed(q.done.Load()) >= limit
}

// String names the route.
func (r *Route) String() string { return fmt.Sprintf("Route(%#x/%#x)", r.value, r.mask) }

// String names the OneShot.
func (s *OneShot) String() string { return fmt.Sprintf("OneShot(%p)", s) }
