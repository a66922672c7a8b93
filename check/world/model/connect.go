package model

// Private returns n bytes of private data; the same n gives the same bytes.
func Private(n int) string {
	b := make([]byte, max(0, n))
	for i := range b {
		b[i] = byte(i*5 + n)
	}
	return string(b)
}

// refuseConnection adds what connecting and accepting are refused for: they need a
// dispatcher for connection events with room for two, and private data that fits.
func (p *endpoint) refuseConnection(c *call) {
	c.refuse(p.conn == nil, invalidState|subEVDConnect)
	c.refuse(p.zone == nil, invalidState|subPZ)
	c.refuse(c.Int("private") > p.w.maxPrivate, invalidParameter)
	p.conn.refuse(c, 2)
}

// connect judges a connect to the qualifier of a service point or, with dup_connect,
// to the one to which another endpoint has connected.
func (p *endpoint) connect(c *call) {
	c.refuse(c.Text("addr") == "malformed", invalidAddress)
	c.refuse(c.Text("timeout") == "negative", invalidParameter)
	p.refuseConnection(c)
	c.refuseUnless(p, unconnected)
	qual := p.w.qualOf(c.Text("to"))
	if c.Op == "dup_connect" {
		if of := p.w.eps.named(c.Text("of")); need(c, of) {
			c.refuseUnless(of, isConnected)
			qual = of.target
		}
	}
	if !c.succeeded() {
		return
	}
	p.connRoom = 2
	p.state = activePending
	if c.Text("addr") == "nowhere" {
		p.end(unreachable, "")
		return
	}
	p.target = qual
	s := p.w.listening(qual)
	if s == nil || s.used || s.full() {
		p.end(nonPeerRejected, "")
		return
	}
	p.request = s.announce(p, Private(c.Int("private")))
}

// established connects the endpoint to its peer.
func (p *endpoint) established(peer *endpoint, private string) {
	p.state, p.peer = isConnected, peer
	p.announce(established, private)
}

func (p *endpoint) disconnect(c *call) {
	c.refuse(c.Text("how") == "bad", invalidParameter)
	c.refuse(p.in(unconnected, reserved, passivePending, tentative), stateCodes[p.state])
	if !c.succeeded() {
		return
	}
	graceful := c.Text("how") == "graceful"
	switch {
	case p.state == isDisconnected, graceful && p.state == disconnectPending:
	case graceful && p.state == isConnected:
		p.state = disconnectPending
		p.execute()
	default:
		p.endBoth(disconnected)
	}
}

// end ends a connection, or an attempt to connect: everything posted is flushed,
// then comes the event of the end.
func (p *endpoint) end(number int, private string) {
	p.state = isDisconnected
	p.flush()
	p.announce(number, private)
	p.detach()
}

// endBoth ends a connection for both sides.
func (p *endpoint) endBoth(number int) {
	peer := p.peer
	p.end(number, "")
	if peer != nil {
		peer.end(number, "")
	}
}

// announce queues a connection event.
func (p *endpoint) announce(number int, private string) {
	if p.connRoom == 0 {
		return
	}
	p.connRoom--
	if number == established {
		p.connects++
	} else {
		p.disconnects++
	}
	p.conn.put(queued{
		want:   Event{Number: number, Source: p.name, Private: private},
		stream: "connection " + p.name, of: p.name, conn: true,
	})
}

// detach frees the room that an endpoint reserved for its connection, and parts it
// from its peer and its request.
func (p *endpoint) detach() {
	p.connRoom = 0
	if p.peer != nil {
		p.peer, p.peer.peer = nil, nil
	}
	p.request = nil
}

// cr is a connection request.
type cr struct {
	w       *World
	name    string
	handle  any
	dead    bool // it was answered
	point   *point
	qual    int
	from    *endpoint
	own     *endpoint // the endpoint that came with it, or nil
	private string
}

func (q *cr) usable() bool { return !q.dead }

// CR returns the handle of a request; nil if the program has not got the request's
// event yet.
func (w *World) CR(name string) any {
	if q := w.crs.named(name); q != nil {
		return q.handle
	}
	return nil
}

// CRs returns how many requests there were.
func (w *World) CRs() int { return len(w.crs.all) }

func (q *cr) query(c *call) {
	c.expect("qual", q.qual, "private", len(q.private), "intact", 1, "truncated", 0, "own", q.w.eps.index(q.own))
}

// accept judges an answer to a request: with the endpoint of the command, or with
// that of the request, which the command may name or not.
func (q *cr) accept(c *call) {
	p := q.w.eps.named(c.Text("ep"))
	if q.own != nil && (p == nil || p == q.own) {
		p = q.own
	} else {
		c.refuse(q.own != nil, invalidParameter)
		if need(c, p) {
			c.refuseUnless(p, unconnected)
		}
	}
	if p != nil {
		p.refuseConnection(c)
	}
	if !c.succeeded() {
		return
	}
	p.connRoom = 2
	if waits := q.answered(); !waits {
		p.state = activePending // only during this call
		p.end(acceptCompletionError, "")
		return
	}
	p.target = 0
	q.from.established(p, Private(c.Int("private")))
	p.established(q.from, "")
}

func (q *cr) reject(c *call) {
	c.refuse(c.Int("private") > q.w.maxPrivate, invalidParameter)
	if !c.succeeded() {
		return
	}
	waits := q.answered()
	q.releaseEndpoint()
	if waits {
		q.from.end(peerRejected, Private(c.Int("private")))
	}
}

// handoff judges the handoff of a request to the service point of another
// qualifier, where it becomes a new request.
func (q *cr) handoff(c *call) {
	s := q.w.listening(q.w.qualOf(c.Text("to")))
	c.refuse(s == nil, invalidParameter)
	if s != nil {
		c.refuse(s.used, connQualUnavailable)
		c.refuse(s.full(), insufficientResources)
	}
	if !c.succeeded() {
		return
	}
	waits := q.answered()
	if next := s.announce(q.from, q.private); waits {
		q.from.request = next
	}
	q.releaseEndpoint()
}

// answered records the answer, and reports whether the active side still waits for it.
func (q *cr) answered() bool {
	q.dead = true
	q.point.waiting--
	return q.waits()
}

// waits reports whether the active side still waits for the answer.
func (q *cr) waits() bool { return q.from.state == activePending && q.from.request == q }

// dequeued records that the program has got the event of a request, and with it the
// endpoint that the service point made for it.
func (q *cr) dequeued(c *call, e Event) {
	p := q.own
	q.handle, q.w.crs.all[Index('c', q.name)] = e.Handle, q
	if p == nil || p.state != tentative || p.name != "" {
		return
	}
	p.name = q.w.eps.next()
	q.w.eps.all = append(q.w.eps.all, p)
	p.waits = true
	if e.Attr == nil {
		e.Attr = new(map[string]int)
	}
	p.setAttr(c, *e.Attr, false)
}

// releaseEndpoint parts a request from its endpoint. The endpoint of an RSP becomes
// UNCONNECTED; one that was made for the request is destroyed.
func (q *cr) releaseEndpoint() {
	p := q.own
	switch {
	case p == nil:
	case p.state == passivePending:
		p.state = unconnected
	case p.state == tentative:
		p.destroy()
	}
}
