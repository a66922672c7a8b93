package model

import "fmt"

// point is a service point: public (PSP), reserved (RSP) or common (CSP).
type point struct {
	kind    string // of the command that made it
	open    bool
	qual    int
	to      *evd
	backlog int
	waiting int
	makes   bool      // a PSP whose requests come with endpoints of their own
	ep      *endpoint // the endpoint of an RSP
	used    bool      // the request of an RSP has come
}

const (
	connQualUnavailable Code = 0x14 << 16
)

func (w *World) point(name string) *point { return object(w.points, 's', name) }

// newPoint judges the making of a service point of the command's kind.
//
//	psp s0 evd=e0 qual=7 backlog=2 makes=endpoints
//	rsp s1 evd=e0 ep=p3
//	csp s2 evd=e0 qual=8
func (w *World) newPoint(c Command, r Result) error {
	s := &point{
		kind: c.Op, qual: c.Int("qual"), to: w.evd(c.Text("evd")), backlog: c.Int("backlog"),
		makes: c.Has("makes"), ep: w.ep(c.Text("ep")),
	}
	w.points = append(w.points, nil)
	var v verdict
	v.when(s.to == nil || !s.to.open, invalidHandle)
	v.when(s.to != nil && s.to.takes&streamCR == 0, invalidParameter)
	v.when(s.to != nil && s.to.feeds > 0 && s.to.class != 0, invalidState)
	v.when(s.backlog < 0, invalidParameter)
	for _, o := range w.points {
		v.when(o != nil && o.open && o.qual == s.qual && s.qual != 0, connQualInUse)
	}
	if s.kind == "rsp" {
		v.must = append(v.must, s.ep.usable().must...)
		if s.ep != nil && s.ep.state != unconnected {
			v.when(true, stateCodes[s.ep.state])
		}
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	w.points[len(w.points)-1] = s
	s.open = true
	s.to.feeds++
	s.to.class = 0
	if s.ep != nil {
		s.ep.state = reserved
	}
	if s.qual != 0 {
		return r.check("qual", s.qual)
	}
	s.qual = r.Values["qual"]
	for _, o := range w.points {
		if o != nil && o != s && o.open && o.qual == s.qual {
			return fmt.Errorf("qualifier %d is that of another service point", s.qual)
		}
	}
	return nil
}

// freePoint judges the freeing of a service point; one of another kind is an
// invalid handle.
func (w *World) freePoint(c Command, r Result) error {
	s := w.point(c.On)
	var v verdict
	v.when(s == nil || s.kind+"_free" != c.Op, invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok || !s.open {
		return err
	}
	s.open = false
	s.to.feeds--
	if s.ep != nil && !s.used {
		s.ep.state = unconnected
	}
	s.used = true
	return nil
}

// queryPoint judges a query of a service point.
func (w *World) queryPoint(c Command, r Result) error {
	s := w.point(c.On)
	var v verdict
	v.when(s == nil || !s.open, invalidHandle)
	v.when(c.Text("mask") == "bad", invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("qual", s.qual, "evd", indexOf(w.evds, s.to), "ep", indexOf(w.eps, s.ep), "makes", number(s.makes))
}

// qualOf returns the qualifier of a service point, open or closed; for a point that
// was never made, a qualifier that nobody has.
func (w *World) qualOf(name string) int {
	if s := w.point(name); s != nil {
		return s.qual
	}
	return -1
}

// listening returns the open service point with a qualifier.
func (w *World) listening(qual int) *point {
	for _, o := range w.points {
		if o != nil && o.open && o.qual == qual {
			return o
		}
	}
	return nil
}

// ask delivers a connection request to a qualifier.
func (w *World) ask(p *endpoint, qual int, private string) {
	p.target = qual
	s := w.listening(qual)
	if s == nil || s.used || s.backlog > 0 && s.waiting >= s.backlog {
		w.end(p, nonPeerRejected)
		return
	}
	p.asked = w.announce(s, p, private)
}

// announce queues the event of a request at a service point. The event brings its
// own place.
func (w *World) announce(s *point, from *endpoint, private string) *cr {
	q := &cr{point: s, qual: s.qual, from: from, private: private}
	switch {
	case s.ep != nil:
		q.own, s.used = s.ep, true
		q.own.state, q.own.own = passivePending, q
	case s.makes: // it gets its name when the program gets the event
		q.own = &endpoint{state: tentative, own: q}
	}
	w.crs = append(w.crs, q)
	s.waiting++
	s.to.awaited++
	w.put(s.to, queued{
		want:   Event{Number: connectionRequest, Source: fmt.Sprintf("s%d", indexOf(w.points, s))},
		stream: "requests", cr: q,
	})
	return q
}

// see records that the program has got the event of a request, and with it the
// endpoint that the service point made for it.
func (w *World) see(q *cr, e Event) error {
	q.seen, q.Handle = true, e.Handle
	p := q.own
	if p == nil || p.state != tentative || p.name != "" {
		return nil
	}
	p.name = fmt.Sprintf("p%d", len(w.eps))
	w.eps = append(w.eps, p)
	p.waits = true
	return p.setAttr(Command{}, Result{Values: e.attr()})
}

// handoff judges the handoff of a request to the service point of another
// qualifier, where it becomes a new request.
func (w *World) handoff(c Command, r Result) error {
	q, s := w.cr(c.On), w.listening(w.qualOf(c.Text("to")))
	var v verdict
	v.when(q == nil || q.dead, invalidHandle)
	v.when(s == nil, invalidParameter)
	if s != nil {
		v.when(s.used, connQualUnavailable)
		v.when(s.backlog > 0 && s.waiting >= s.backlog, insufficientResources)
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	waits := q.waits()
	again := w.announce(s, q.from, q.private)
	if waits {
		q.from.asked = again
	}
	q.answered()
	w.disown(q)
	return nil
}

// disown parts a request from its endpoint. The endpoint of an RSP becomes
// UNCONNECTED; one that was made for the request is destroyed.
func (w *World) disown(q *cr) {
	p := q.own
	switch {
	case p == nil:
	case p.state == passivePending:
		p.state, p.own = unconnected, nil
	case p.state == tentative:
		w.destroy(p)
	}
}
