package delivery

import (
	"sync/atomic"

	"godat/hw/event"
	"godat/internal/ring"
)

// rings is the ring of a queue, with the older rings that Resize has replaced by
// longer ones. It has the methods of a ring.
//
// Producers put into the newest ring that they see. Resize publishes a ring before
// it raises the limit, so a producer that has one of the new places sees the new
// ring. An older ring therefore never holds more events than it has places, even if
// a producer that last saw that ring comes late.
//
// The consumer empties the older rings first. The producer of an event in a newer ring may
// have put other events into an older one before. Their claims are visible by then, so the
// consumer takes the event once it has taken all that was claimed in the older rings.
type rings struct {
	newest atomic.Pointer[stage]
}

// stage is one of the rings.
type stage struct {
	older   *stage // immutable
	r       ring.Reserved[event.Event]
	allowed uint64 // the consumer's: events before that position may be taken
}

// grow makes room for that many events.
func (r *rings) grow(places int) {
	older := r.newest.Load()
	if older != nil && places <= older.r.Cap() {
		return
	}
	s := &stage{older: older}
	s.r.Init(places)
	r.newest.Store(s)
}

func (r *rings) PutAll(evs []event.Event) { r.newest.Load().r.PutAll(evs) }

// Tail counts the events that have been claimed in all rings so far.
func (r *rings) Tail() uint64 {
	s := r.newest.Load()
	t := s.r.Tail()
	if s.older != nil {
		t += s.older.tail()
	}
	return t
}

// Next counts the events that have been taken from all rings. Next and the methods
// below belong to the consumer.
func (r *rings) Next() uint64 {
	s := r.newest.Load()
	n := s.r.Next()
	if s.older != nil {
		n += s.older.next()
	}
	return n
}

func (r *rings) Take(buf []event.Event) int {
	s := r.newest.Load()
	if s.older == nil {
		return s.r.Take(buf)
	}
	return s.take(buf)
}

func (r *rings) Ready(limit uint64) uint64 {
	s := r.newest.Load()
	if s.older == nil {
		return s.r.Ready(limit)
	}
	return s.ready(limit)
}

func (s *stage) tail() (n uint64) {
	for ; s != nil; s = s.older {
		n += s.r.Tail()
	}
	return n
}

func (s *stage) next() (n uint64) {
	for ; s != nil; s = s.older {
		n += s.r.Next()
	}
	return n
}

// look allows the consumer to take the events that are published by now, if the
// older rings have claimed nothing beyond what is ready there. An event stays
// allowed, whichever producer claims a place in an older ring later: that
// producer's event need not come before it.
func (s *stage) look(limit uint64) {
	published := s.r.Next() + s.r.Ready(limit) // before the older rings' claims are read
	if s.older.tail() == s.older.next()+s.older.ready(limit) {
		s.allowed = published
	}
}

func (s *stage) ready(limit uint64) uint64 {
	if s.older == nil {
		return s.r.Ready(limit)
	}
	s.look(limit)
	return s.older.ready(limit) + s.allowed - s.r.Next()
}

func (s *stage) take(buf []event.Event) int {
	if s.older == nil {
		return s.r.Take(buf)
	}
	s.look(uint64(len(buf)))
	n := s.older.take(buf)
	return n + s.r.Take(buf[n:min(len(buf), n+int(s.allowed-s.r.Next()))])
}
