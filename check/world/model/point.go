package model

// point is a service point: public (PSP), reserved (RSP) or common (CSP).
type point struct {
	handle
	w       *World
	kind    string // of the command that made it
	qual    int
	to      *evd
	backlog int
	waiting int
	makes   bool      // a PSP whose requests come with endpoints of their own
	ep      *endpoint // the endpoint of an RSP
	used    bool      // the request of an RSP has come
}

// newPoint judges the making of a service point of the command's kind.
//
//	psp s0 evd=e0 qual=7 backlog=2 makes=endpoints
//	rsp s1 evd=e0 ep=p3
//	csp s2 evd=e0 qual=8
func (w *World) newPoint(c *call) {
	s := &point{
		handle: handle{c.On, true}, w: w, kind: c.Op, qual: c.Int("qual"), to: w.evds.named(c.Text("evd")), backlog: c.Int("backlog"),
		makes: c.Has("makes"), ep: w.eps.named(c.Text("ep")),
	}
	if need(c, s.to) {
		c.refuse(s.to.takes&streamCR == 0, invalidParameter)
		c.refuse(!s.to.fits(0, nil), invalidState)
	}
	c.refuse(s.backlog < 0, invalidParameter)
	c.refuse(s.qual != 0 && w.listening(s.qual) != nil, connQualInUse)
	if s.kind == "rsp" && need(c, s.ep) {
		c.refuseUnless(s.ep, unconnected)
	}
	got := c.Values["qual"]
	other := w.listening(got)
	if !w.points.add(c, s) {
		return
	}
	if s.ep != nil {
		s.ep.state = reserved
	}
	switch {
	case s.qual != 0:
		c.expect("qual", s.qual)
	case other != nil:
		c.failf("qualifier %d is that of another service point", got)
	}
	s.qual = got
}

// free judges the freeing of a service point; one of another kind is an invalid
// handle.
func (s *point) free(c *call) {
	c.refuse(s.kind+"_free" != c.Op, invalidHandle)
	if !s.handle.free(c, false, success) {
		return
	}
	if s.ep != nil && !s.used {
		s.ep.state = unconnected
	}
	s.used = true
}

func (s *point) query(c *call) {
	c.expect("qual", s.qual, "evd", s.w.evds.index(s.to), "ep", s.w.eps.index(s.ep), "makes", number(s.makes))
}

// full reports whether as many requests wait as the backlog allows.
func (s *point) full() bool { return s.backlog > 0 && s.waiting >= s.backlog }

// qualOf returns the qualifier of a service point, open or closed; for a point that
// was never made, a qualifier that no point has.
func (w *World) qualOf(name string) int {
	if s := w.points.named(name); s != nil {
		return s.qual
	}
	return -1
}

// listening returns the open service point with a qualifier.
func (w *World) listening(qual int) *point {
	for _, s := range w.points.live() {
		if s.qual == qual {
			return s
		}
	}
	return nil
}

// announce queues the event of a request at a service point. The event brings its
// own place.
func (s *point) announce(from *endpoint, private string) *cr {
	q := &cr{w: s.w, name: s.w.crs.next(), point: s, qual: s.qual, from: from, private: private}
	switch {
	case s.ep != nil:
		q.own, s.used = s.ep, true
		q.own.state = passivePending
	case s.makes: // it gets its name when the program gets the event
		q.own = &endpoint{w: s.w, state: tentative}
	}
	s.w.crs.all = append(s.w.crs.all, nil) // until the program gets the event
	s.waiting++
	s.to.put(queued{want: Event{Number: connectionRequest, Source: s.name}, stream: "requests", cr: q})
	return q
}
