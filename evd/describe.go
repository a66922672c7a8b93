package evd

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
	return q.d.String()
}

// String names the dispatcher. It may be called at any time, as the String of every
// handle.
func (d *Dispatcher) String() string {
	if d == nil {
		return "Dispatcher(nil)"
	}
	return fmt.Sprintf("Dispatcher(%p, %v)", d, d.mode)
}

// String names the route.
func (r *Route) String() string {
	if r == nil {
		return "Route(nil)"
	}
	return fmt.Sprintf("Route(%#x/%#x)", r.value, r.mask)
}

// String names the request.
func (s *OneShot) String() string { return fmt.Sprintf("OneShot(%p)", s) }

// String names the CNO.
func (c *CNO) String() string { return fmt.Sprintf("CNO(%p)", c) }
