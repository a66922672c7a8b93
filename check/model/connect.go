package model

import "slices"

// cr is a connection request.
type cr struct {
	Handle  any
	seen    bool // its event was dequeued
	dead    bool
	point   *point
	qual    int
	from    *endpoint
	own     *endpoint // the endpoint that came with it, or nil
	private string
}

// CR returns the handle of a request; nil if the program has not got the request's
// event yet.
func (w *World) CR(name string) any {
	if c := object(w.crs, 'c', name); c != nil {
		return c.Handle
	}
	return nil
}

// CRs returns how many requests there were.
func (w *World) CRs() int { return len(w.crs) }

func (w *World) cr(name string) *cr {
	c := object(w.crs, 'c', name)
	if c == nil || !c.seen {
		return nil // the program has no handle
	}
	return c
}

// Private returns n bytes of private data; the same n gives the same bytes.
func Private(n int) string {
	b := make([]byte, max(0, n))
	for i := range b {
		b[i] = byte(i*5 + n)
	}
	return string(b)
}

// attach adds what connecting and accepting are refused for: they need a dispatcher
// for connection events with room for two, and private data that fits.
func (w *World) attach(v *verdict, p *endpoint, private int) { w.attachIn(v, p, private, unconnected) }

// attachIn is attach for an endpoint in another state than UNCONNECTED.
func (w *World) attachIn(v *verdict, p *endpoint, private, state int) {
	v.when(p.conn == nil, invalidState|subEVDConnect)
	v.when(p.zone == nil, invalidState|subPZ)
	v.when(private > w.limits.Private, invalidParameter)
	if p.state != state {
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
	v.when(c.Text("addr") == "malformed", invalidAddress)
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
	w.ask(p, w.qualOf(c.Text("to")), Private(c.Int("private")))
	return nil
}

// dupConnect judges a connect to the qualifier to which another endpoint has
// connected.
func (w *World) dupConnect(c Command, r Result) error {
	p, o := w.ep(c.On), w.ep(c.Text("of"))
	v := p.usable()
	v.must = append(v.must, o.usable().must...)
	if p != nil {
		w.attach(&v, p, c.Int("private"))
	}
	if o != nil && o.state != isConnected {
		v.when(true, stateCodes[o.state])
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	p.attached()
	p.state = activePending
	w.ask(p, o.target, Private(c.Int("private")))
	return nil
}

func (w *World) queryCR(c Command, r Result) error {
	q := w.cr(c.On)
	var v verdict
	v.when(q == nil || q.dead, invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("qual", q.qual, "private", len(q.private), "intact", 1, "truncated", 0, "own", indexOf(w.eps, q.own))
}

// accept judges an answer to a request: with the endpoint of the command, or with
// that of the request, which the command may name or not.
func (w *World) accept(c Command, r Result) error {
	q, p := w.cr(c.On), w.ep(c.Text("ep"))
	var v verdict
	v.when(q == nil || q.dead, invalidHandle)
	own := q != nil && q.own != nil
	switch {
	case own && (p == nil || p == q.own):
		p = q.own
		w.attachIn(&v, p, c.Int("private"), p.state)
	case own:
		v.when(true, invalidParameter)
		fallthrough
	default:
		v.must = append(v.must, p.usable().must...)
		if p != nil {
			w.attach(&v, p, c.Int("private"))
		}
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	waits := q.waits()
	q.answered()
	p.own = nil
	p.attached()
	if !waits {
		p.state = activePending // only during this call
		w.end(p, acceptCompletionError)
		return nil
	}
	active := q.from
	p.target = 0
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
	waits := q.waits()
	q.answered()
	w.disown(q)
	if waits {
		p := q.from
		w.endWith(p, peerRejected, Private(c.Int("private")))
	}
	return nil
}

func (q *cr) answered() {
	q.dead = true
	q.point.waiting--
}

// waits reports whether the active side still waits for the answer.
func (q *cr) waits() bool { return q.from.state == activePending && q.from.asked == q }

func (w *World) disconnect(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	v.when(c.Text("how") == "bad", invalidParameter)
	if p != nil && slices.Contains([]int{unconnected, reserved, passivePending, tentative}, p.state) {
		v.when(true, stateCodes[p.state])
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

// end ends a connection, or an attempt to connect: everything posted is flushed,
// then comes the event of the end.
func (w *World) end(p *endpoint, number int) { w.endWith(p, number, "") }

func (w *World) endWith(p *endpoint, number int, private string) {
	p.state = isDisconnected
	w.flush(p)
	w.tell(p, number, private)
	w.leave(p)
}

// tell queues a connection event.
func (w *World) tell(p *endpoint, number int, private string) {
	if p.connRoom == 0 {
		return
	}
	p.connRoom--
	if number == established {
		p.connects++
	} else {
		p.disconnects++
	}
	w.put(p.conn, queued{
		want:   Event{Number: number, Source: p.name, Private: private},
		stream: "connection " + p.name, of: p.name, conn: true,
	})
}

// leave frees the room that an endpoint reserved for its connection, and parts it
// from its peer and its request.
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
