package delivery

import "fmt"

// Places says how many places of a queue there are and how many are reserved, for
// messages: both may be out of date at once.
func (q *Queue) Places() (reserved, limit uint64) {
	freed := q.freed(q.done.Load())
	r := q.reserved.Load() &^ closedBit
	return r - min(freed, r), q.limit.Load()
}

// Name says which queue it is.
func (q *Queue) Name() string {
	switch {
	case q.route != nil:
		return q.route.String()
	case q.shot != nil:
		return q.shot.String()
	}
	return q.d.public.String()
}

// Full reports whether every place is reserved or has an event in it. It looks
// afresh only if it seems so.
func (q *Queue) Full() bool {
	limit := q.limit.Load()
	return q.reserved.Load()-q.seen.Load() >= limit && q.reserved.Load()-q.freed(q.done.Load()) >= limit
}

// String names the route.
func (r *Route) String() string { return fmt.Sprintf("Route(%#x/%#x)", r.value, r.mask) }

// String names the request.
func (s *OneShot) String() string { return fmt.Sprintf("OneShot(%p)", s) }
