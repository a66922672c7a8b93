package model

import "slices"

// srq is a shared receive queue.
type srq struct {
	handle
	w          *World
	zone       *zone
	depth, iov int
	recvs      []*work // receives that no endpoint has taken
	low        int     // the low watermark
	armed      bool
}

func (w *World) newSRQ(c *call) {
	q := &srq{w: w, handle: handle{c.On, true}, zone: w.memory.zones.named(c.Text("pz")), depth: c.Values["recvs"], iov: c.Values["iov"]}
	need(c, q.zone)
	c.refuse(c.Int("recvs") < 0, invalidParameter)
	if w.srqs.add(c, q) {
		c.expect("enough", number(q.depth >= max(1, c.Int("recvs")) && q.iov >= max(1, c.Int("iov"))))
	}
}

func (q *srq) free(c *call) {
	users := q.w.eps.count(func(p *endpoint) bool { return p.srq == q })
	if q.handle.free(c, users > 0, invalidState|subSRQInUse) {
		q.recvs = nil
	}
}

func (q *srq) query(c *call) {
	c.expect("available", len(q.recvs), "outstanding", len(q.recvs), "recvs", q.depth, "low", q.low)
}

// setLow judges the arming of a shared queue's low watermark; 0 disarms it.
func (q *srq) setLow(c *call) {
	n := c.Int("receives")
	c.refuse(n < 0 || n > q.depth, invalidParameter)
	if c.succeeded() {
		q.low, q.armed = n, n > 0
		q.checkLow()
	}
}

// checkLow reports that fewer receives are left than the armed low watermark.
func (q *srq) checkLow() {
	if q.armed && len(q.recvs) < q.low {
		q.armed = false
		q.w.report(q.name)
	}
}

// resize judges a resize of a shared queue, which keeps the posted receives.
func (q *srq) resize(c *call) {
	n := c.Int("recvs")
	c.refuse(n < 1 || n == tooMany, invalidParameter)
	c.refuse(n < len(q.recvs), invalidState)
	if !c.succeeded() {
		return
	}
	if q.depth = c.Values["recvs"]; q.depth < n {
		c.failf("recvs is %d, less than %d", q.depth, n)
	}
}

// sinks returns the dispatchers to which a queue's completions may go. Each
// reserves room for every receive, since any endpoint may take it.
func (q *srq) sinks() (all []*evd) {
	for _, p := range q.w.eps.live() {
		if p.srq == q && p.recv != nil && !slices.Contains(all, p.recv) {
			all = append(all, p.recv)
		}
	}
	return all
}

func (q *srq) post(c *call) {
	x := workOf(c.Command)
	x.operation = operations["recv"]
	c.refuse(len(x.segs) > q.iov, invalidParameter)
	q.w.memory.refuseSegments(c, x.segs, q.zone, localWrite)
	c.refuse(len(q.recvs) >= q.depth, insufficientResources)
	for _, d := range q.sinks() {
		d.refuse(c, 1)
	}
	if !c.succeeded() {
		return
	}
	q.recvs = append(q.recvs, x)
	for len(q.recvs) > 0 {
		p := q.firstInLine()
		if p == nil {
			break
		}
		p.execute()
	}
}

// firstInLine returns the endpoint whose request has waited longest for a receive
// of the queue.
func (q *srq) firstInLine() (first *endpoint) {
	for _, p := range q.w.eps.live() {
		if p.peer == nil || p.peer.srq != q || len(p.reqs) == 0 || p.stalled == 0 {
			continue
		}
		if first == nil || p.stalled < first.stalled {
			first = p
		}
	}
	return first
}

// receive reports whether the endpoint has a receive, for which it may take one of
// its shared queue.
func (p *endpoint) receive() bool {
	q := p.srq
	if q == nil || len(q.recvs) == 0 {
		return len(p.recvs) > 0
	}
	q.recvs[0].to = p.recv
	p.recvs = append(p.recvs, q.recvs[0])
	q.recvs = q.recvs[1:]
	q.checkLow()
	if p.watched && p.soft == 0 { // it completes each receive before it takes another
		p.watched = false
		q.w.report(p.name)
	}
	return true
}
