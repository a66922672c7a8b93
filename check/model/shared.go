package model

// srq is a shared receive queue.
type srq struct {
	name       string
	open       bool
	zone       *zone
	depth, iov int
	recvs      []*work // receives that no endpoint has taken
	low        int     // the low watermark
	armed      bool
}

const subSRQInUse = 87

func (w *World) srq(name string) *srq { return object(w.srqs, 'q', name) }

func (w *World) newSRQ(c Command, r Result) error {
	z := w.zone(c.Text("pz"))
	w.srqs = append(w.srqs, nil)
	var v verdict
	v.when(z == nil || !z.open, invalidHandle)
	v.when(c.Int("recvs") < 0, invalidParameter)
	ok, err := v.judge(r.Code)
	if ok {
		z.uses++
		q := &srq{name: c.On, open: true, zone: z, depth: r.Values["recvs"], iov: r.Values["iov"]}
		w.srqs[len(w.srqs)-1] = q
		return r.check("enough", number(q.depth >= max(1, c.Int("recvs")) && q.iov >= max(1, c.Int("iov"))))
	}
	return err
}

func (w *World) freeSRQ(c Command, r Result) error {
	q := w.srq(c.On)
	var v verdict
	v.when(q == nil, invalidHandle)
	v.when(q != nil && q.open && w.takers(q) > 0, invalidState|subSRQInUse)
	ok, err := v.judge(r.Code)
	if ok && q.open {
		q.open, q.recvs = false, nil
		q.zone.uses--
	}
	return err
}

func (w *World) querySRQ(c Command, r Result) error {
	q := w.srq(c.On)
	var v verdict
	v.when(q == nil || !q.open, invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("available", len(q.recvs), "outstanding", len(q.recvs), "recvs", q.depth, "low", q.low)
}

// takers counts the endpoints that take receives from a queue.
func (w *World) takers(q *srq) (n int) {
	for _, p := range w.eps {
		if p != nil && p.state != gone && p.srq == q {
			n++
		}
	}
	return n
}

// sinks returns the dispatchers to which a queue's completions may go. Each
// reserves room for every receive, since nobody knows which endpoint will take it.
func (w *World) sinks(q *srq) (all []*evd) {
	seen := map[*evd]bool{nil: true}
	for _, p := range w.eps {
		if p != nil && p.state != gone && p.srq == q && !seen[p.recv] {
			seen[p.recv] = true
			all = append(all, p.recv)
		}
	}
	return all
}

func (w *World) postShared(c Command, r Result) error {
	q, x := w.srq(c.On), workOf(c)
	x.op = "recv"
	var v verdict
	v.when(q == nil || !q.open, invalidHandle)
	if q != nil {
		v.when(len(x.segs) > q.iov, invalidParameter)
		w.checkSegments(&v, x.segs, q.zone, localWrite)
		v.when(len(q.recvs) >= q.depth, insufficientResources)
		for _, d := range w.sinks(q) {
			w.room(&v, d, 1)
		}
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	q.recvs = append(q.recvs, x)
	for _, d := range w.sinks(q) {
		d.awaited++
	}
	for len(q.recvs) > 0 {
		p := w.firstInLine(q)
		if p == nil {
			break
		}
		w.pump(p)
	}
	return nil
}

// firstInLine returns the endpoint whose request has waited longest for a receive
// of the queue.
func (w *World) firstInLine(q *srq) (first *endpoint) {
	for _, p := range w.eps {
		if p == nil || p.peer == nil || p.peer.srq != q || len(p.reqs) == 0 || p.stalled == 0 {
			continue
		}
		if first == nil || p.stalled < first.stalled {
			first = p
		}
	}
	return first
}

// draw moves the first shared receive to the endpoint that takes it. From then on
// only that endpoint's dispatcher has room reserved for its completion.
func (w *World) draw(p *endpoint) {
	q := p.srq
	if q == nil || len(q.recvs) == 0 {
		return
	}
	for _, d := range w.sinks(q) {
		if d != p.recv {
			d.awaited--
		}
	}
	q.recvs[0].to = p.recv
	p.recvs = append(p.recvs, q.recvs[0])
	q.recvs = q.recvs[1:]
	w.passed(p)
}
