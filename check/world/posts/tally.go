package posts

import (
	"fmt"

	"godat/ep"
	"godat/hw"
)

// tally is what the books know of all posts of a lane. Of some that are quiet nobody knows how they ended.
type tally struct {
	posted, failed, unknown uint64
	unknownOctets           uint64
	moved                   map[string]ep.Moved // what succeeded for certain, by the kind of operation
}

func (l *lane) tally() tally {
	t := tally{moved: make(map[string]ep.Moved)}
	for _, p := range l.pages {
		for i := range p.begun.Load() {
			t.add(&p.entries[i])
		}
	}
	return t
}

func (t *tally) add(e *entry) {
	switch e.state.Load() {
	case refused:
		return
	case failed:
		t.failed++
	case succeeded:
		kind := e.came.String()
		if e.invalidates { // its event says SEND
			kind = hw.OpSendInvalidate.String()
		}
		m := t.moved[kind]
		t.moved[kind] = ep.Moved{Operations: m.Operations + 1, Octets: m.Octets + uint64(e.octets)}
	case accepted:
		if e.quiet() {
			t.unknown++
			t.unknownOctets += uint64(e.length)
		}
	}
	t.posted++
}

// differs says in what an endpoint's counts differ from the books; "" for nothing.
func (t *tally) differs(s *ep.QueueSnapshot) string {
	ended, kinds := s.Failed+s.Flushed, make(map[string]ep.Moved)
	if !within(ended, t.failed, t.unknown) {
		return fmt.Sprintf("%d failed and %d were flushed, of %d and %d quiet ones", s.Failed, s.Flushed, t.failed, t.unknown)
	}
	for _, m := range s.Moved {
		ended += m.Operations
		kinds[m.Kind] = m
	}
	if s.Posted != t.posted || ended+uint64(s.Outstanding) != s.Posted {
		return fmt.Sprintf("%d posted, %d ended, %d outstanding, of %d", s.Posted, ended, s.Outstanding, t.posted)
	}
	for op := range hw.Op(hw.OpEnd) {
		kind := op.String()
		got, known := kinds[kind], t.moved[kind]
		if !within(got.Operations, known.Operations, t.unknown) || !within(got.Octets, known.Octets, t.unknownOctets) {
			return fmt.Sprintf("%d of kind %s with %d octets, of %d with %d, and %d quiet ones with %d",
				got.Operations, kind, got.Octets, known.Operations, known.Octets, t.unknown, t.unknownOctets)
		}
	}
	return ""
}

// within reports whether n is one of least and the more numbers above it.
func within(n, least, more uint64) bool { return n >= least && n-least <= more }

// miscounted says in what the counts that the endpoint shows differ from the books; "" for nothing.
func (a *account) miscounted() string {
	s := a.ep.Snapshot()
	for d, counts := range [...]*ep.QueueSnapshot{&s.Requests, &s.Receives} {
		t := a.lanes[d].tally()
		if why := t.differs(counts); why != "" {
			return fmt.Sprintf("%ss: %s", direction(d), why)
		}
	}
	return ""
}
