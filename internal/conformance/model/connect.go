package model

import "strconv"

type psp struct {
	open    bool
	qual    int
	to      *evd
	backlog int
	waiting int
}

// cr is a connection request.
type cr struct {
	Handle  any
	seen    bool // its event was dequeued
	dead    bool
	psp     *psp
	qual    int
	from    *endpoint
	private string
}

func (w *World) psp(name string) *psp { return object(w.psps, 's', name) }

// CR is the handle of a request whose event the program has seen; nil if it has
// not.
func (w *World) CR(name string) any {
	if c := object(w.crs, 'c', name); c != nil {
		return c.Handle
	}
	return nil
}

func (w *World) cr(name string) *cr {
	c := object(w.crs, 'c', name)
	if c == nil || !c.seen {
		return nil // the program has no handle
	}
	return c
}

// Private is n bytes of private data.
func Private(n int) string {
	b := make([]byte, max(0, n))
	for i := range b {
		b[i] = byte(i*5 + n)
	}
	return string(b)
}

func (w *World) newPSP(c Command, r Result) error {
	s := &psp{qual: c.Int("qual"), to: w.evd(c.Text("evd")), backlog: c.Int("backlog")}
	w.psps = append(w.psps, nil)
	var v verdict
	v.when(s.to == nil || !s.to.open, invalidHandle)
	v.when(s.to != nil && s.to.takes&streamCR == 0, invalidParameter)
	v.when(s.to != nil && s.to.feeds > 0 && s.to.class != 0, invalidState)
	v.when(s.backlog < 0, invalidParameter)
	for _, o := range w.psps {
		v.when(o != nil && o.open && o.qual == s.qual && s.qual != 0, connQualInUse)
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	w.psps[len(w.psps)-1] = s
	s.open = true
	s.to.feeds++
	s.to.class = 0
	if s.qual == 0 {
		s.qual = r.Values["qual"]
		for _, o := range w.psps {
			if o != nil && o != s && o.open && o.qual == s.qual {
				return r.check("qual", -1)
			}
		}
		return nil
	}
	return r.check("qual", s.qual)
}

func (w *World) freePSP(c Command, r Result) error {
	s := w.psp(c.On)
	var v verdict
	v.when(s == nil, invalidHandle)
	ok, err := v.judge(r.Code)
	if ok && s.open {
		s.open = false
		s.to.feeds--
	}
	return err
}

// attach is what connecting and accepting have in common: a dispatcher for
// connection events, with room for two of them, and private data that fits.
func (w *World) attach(v *verdict, p *endpoint, private int) {
	v.when(p.conn == nil, invalidState|subEVDConnect)
	v.when(private > w.limits.Private, invalidParameter)
	if p.state != unconnected {
		v.when(true, stateCodes[p.state])
	}
	w.room(v, p.conn, 2)
}

func (p *endpoint) attached() {
	p.connRoom = 2
	p.conn.awaited += 2
}

func (w *World) connect(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	if p != nil {
		w.attach(&v, p, c.Int("private"))
		v.when(c.Text("timeout") == "negative", invalidParameter)
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	p.attached()
	p.state = activePending
	if c.Text("addr") == "nowhere" {
		w.end(p, unreachable)
		return nil
	}
	s := w.listening(w.psp(c.Text("to")))
	if s == nil || s.backlog > 0 && s.waiting >= s.backlog {
		w.end(p, nonPeerRejected)
		return nil
	}
	least, most := w.free(s.to)
	if least < 1 && len(s.to.queue) > 0 {
		w.trigger(s.to, false)
	}
	if most < 1 || least < 1 && r.Values["state"] == isDisconnected {
		w.end(p, nonPeerRejected)
		return nil
	}
	q := &cr{psp: s, qual: s.qual, from: p, private: Private(c.Int("private"))}
	w.crs = append(w.crs, q)
	p.asked = q
	s.waiting++
	s.to.awaited++
	w.put(s.to, queued{
		want:   Event{Number: connectionRequest, Source: "s" + strconv.Itoa(w.indexOf(s))},
		stream: "requests", cr: q,
	})
	return nil
}

// listening is the service point that has the qualifier of s now.
func (w *World) listening(s *psp) *psp {
	for _, o := range w.psps {
		if s != nil && o != nil && o.open && o.qual == s.qual {
			return o
		}
	}
	return nil
}

func (w *World) indexOf(s *psp) int {
	for i, o := range w.psps {
		if o == s {
			return i
		}
	}
	return -1
}

func (w *World) queryCR(c Command, r Result) error {
	q := w.cr(c.On)
	var v verdict
	v.when(q == nil || q.dead, invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("qual", q.qual, "private", len(q.private), "intact", 1, "truncated", 0)
}

// accept answers a request with an endpoint.
func (w *World) accept(c Command, r Result) error {
	q, p := w.cr(c.On), w.ep(c.Text("ep"))
	v := p.usable()
	v.when(q == nil || q.dead, invalidHandle)
	if p != nil {
		w.attach(&v, p, c.Int("private"))
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	q.answered()
	p.attached()
	if !q.waits() {
		p.state = activePending // for the length of this call
		w.end(p, acceptCompletionError)
		return nil
	}
	active := q.from
	p.state, active.state = isConnected, isConnected
	p.peer, active.peer = active, p
	w.tell(active, established, Private(c.Int("private")))
	w.tell(p, established, "")
	return nil
}

func (w *World) reject(c Command, r Result) error {
	q := w.cr(c.On)
	var v verdict
	v.when(q == nil || q.dead, invalidHandle)
	v.when(c.Int("private") > w.limits.Private, invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	q.answered()
	if q.waits() {
		p := q.from
		w.endWith(p, peerRejected, Private(c.Int("private")))
	}
	return nil
}

func (q *cr) answered() {
	q.dead = true
	q.psp.waiting--
}

// waits reports whether the side that asked still waits for the answer.
func (q *cr) waits() bool { return q.from.state == activePending && q.from.asked == q }

func (w *World) disconnect(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	v.when(c.Text("how") == "bad", invalidParameter)
	if p != nil && p.state == unconnected {
		v.when(true, stateCodes[unconnected])
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	graceful := c.Text("how") == "graceful"
	switch {
	case p.state == isDisconnected, graceful && p.state == disconnectPending:
	case graceful && p.state == isConnected:
		p.state = disconnectPending
		w.pump(p)
	default:
		peer := p.peer
		w.end(p, disconnected)
		if peer != nil {
			w.end(peer, disconnected)
		}
	}
	return nil
}

// end leaves a connection, or an attempt at one: all is flushed, then comes the
// event that says how it ended.
func (w *World) end(p *endpoint, number int) { w.endWith(p, number, "") }

func (w *World) endWith(p *endpoint, number int, private string) {
	p.state = isDisconnected
	w.flush(p)
	w.tell(p, number, private)
	w.leave(p)
}

// tell is a connection event.
func (w *World) tell(p *endpoint, number int, private string) {
	if p.connRoom == 0 {
		return
	}
	p.connRoom--
	w.put(p.conn, queued{
		want:   Event{Number: number, Source: p.name, Private: private},
		stream: "connection " + p.name, of: p.name, conn: true,
	})
}

// leave gives back what an endpoint held for its connection.
func (w *World) leave(p *endpoint) {
	if p.connRoom > 0 {
		p.conn.awaited -= p.connRoom
		p.connRoom = 0
	}
	if p.peer != nil {
		p.peer, p.peer.peer = nil, nil
	}
	p.asked = nil
}
