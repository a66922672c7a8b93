package delivery

// Places returns how many places of the queue are reserved and how many there are,
// for messages: both numbers may be out of date at once.
func (q *Queue) Places() (reserved, limit uint64) {
	freed := q.freed(q.places.allDone())
	r := q.places.granted()
	return r - min(freed, r), q.places.limit.Load()
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
	if q.kind == kindSink {
		return false
	}
	p := &q.places
	limit := p.limit.Load()
	return p.reserved.Load()-p.seen.Load() >= limit && p.reserved.Load()-q.freed(p.allDone()) >= limit
}
