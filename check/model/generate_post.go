package model

import "strings"

// flags draws the completion flags of a post, rarely illegal ones.
func (g *generator) flags(legal int) string {
	var names []string
	for _, n := range []string{"SUPPRESS", "SOLICITED", "UNSIGNALLED", "FENCE"} {
		likely := legal&Flags[n] != 0
		if likely && g.draw(n, 4) == 3 || !likely && g.draw(n, 32) == 31 {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}

// segments draws n local segments for an endpoint of zone z.
func (g *generator) segments(n int, z *zone, need int) (segs []Segment) {
	for range n {
		segs = append(segs, g.segment(z, need, -1))
	}
	return segs
}

// segment draws a piece of a region; with size -1 the length is drawn, too.
func (g *generator) segment(z *zone, need, size int) Segment {
	s := Segment{Region: Index('m', pickOne(g, 'm', g.w.regions, func(m *region) bool {
		return m.open && m.zone == z && m.priv&need != 0 && len(m.bytes) >= size
	}))}
	length := 64
	if m := g.w.at(s); m != nil {
		length = len(m.bytes)
	}
	s.Off = min(g.of(0, 8, 16, 24, 1), length)
	s.Len = min(g.of(8, 16, 4, 32, 1, 0, 64), length-s.Off)
	if size >= 0 {
		s.Len = size
		s.Off = max(0, min(s.Off, length-size))
	}
	if g.rarely("out of bounds") {
		s.Off, s.Len = g.of(length, length-7, 0, -1), g.of(8, 1, length+1)
	}
	return s
}

func (g *generator) recv() Command {
	name := g.ep(isConnected, unconnected, activePending, disconnectPending, isDisconnected, reserved, passivePending, tentative)
	if g.draw("early", 8) == 7 {
		name = g.seldom()
	}
	return g.recvOn(name)
}

func (g *generator) recvOn(name string) Command {
	p := g.w.ep(name)
	if p == nil {
		return New("recv", name)
	}
	n := g.howMany(p.recvIOV)
	return New("recv", name, "cookie", g.w.step, "flags", g.flags(unsignalled&p.recvFlags),
		"local", JoinSegments(g.segments(n, p.zone, localWrite)))
}

// howMany draws the number of a post's segments: mostly one, rarely more than
// allowed.
func (g *generator) howMany(iov int) int {
	switch {
	case g.rarely("too many"):
		return iov + 1
	case g.draw("many", 4) == 3:
		return g.draw("segments", iov+1)
	}
	return 1
}

func (g *generator) request(op string) Command {
	name := g.ep(isConnected, isDisconnected)
	if g.draw("wrong state", 8) == 7 {
		name = g.seldom()
	}
	return g.requestOn(op, name)
}

func (g *generator) requestOn(op, name string) Command {
	p := g.w.ep(name)
	if p == nil {
		return New(op, name)
	}
	if (op == "write_imm" || op == "send_inv") && p.peer != nil && p.peer.srq != nil {
		op = "send" // DAT does not say whether one that fails has taken a shared receive
	}
	o := operations[op]
	args := []any{"cookie", g.w.step, "flags", g.flags(o.flags &^ (unsignalled &^ p.reqFlags))}
	if op == "fetch_add" || op == "cmp_swap" {
		return New(op, name, append(args, "add", g.w.step, "cmp", g.of(0, 1),
			"local", JoinSegments([]Segment{g.segment(p.zone, o.local, 8)}), "remote", g.remote(p, o, 8))...)
	}
	if op == "read_rmr" {
		n := g.of(8, 16, 1, 0)
		return New(op, name, append(args, "local", g.remote(&endpoint{zone: p.zone}, operations["write"], n), "remote", g.remote(p, o, n))...)
	}
	segs := g.segments(g.howMany(p.segments(op)), p.zone, o.local)
	args = append(args, "local", JoinSegments(segs))
	if op == "send_inv" {
		args = append(args, "remote", g.remote(p, operations["write"], 0))
	}
	if o.remote != 0 {
		args = append(args, "remote", g.remote(p, o, total(segs)))
	}
	if op == "write_imm" {
		args = append(args, "imm", g.w.step)
	}
	return New(op, name, args...)
}

// remote draws the remote segment for n local bytes.
func (g *generator) remote(p *endpoint, o operation, n int) string {
	z := p.zone
	if p.peer != nil {
		z = p.peer.zone
	}
	if g.rarely("other length") {
		n = max(0, n+g.of(-1, 1))
	}
	if len(g.w.names) > 0 && g.draw("window", 2) == 1 {
		return JoinSegments([]Segment{g.through(n)})
	}
	s := g.segment(z, o.remote, n)
	if o.remote == remoteAtomic {
		s.Off -= s.Off % 8 * (1 - number(g.rarely("misaligned")))
	}
	return JoinSegments([]Segment{s})
}

// through draws a piece of what a bind has named, mostly of a name that is still
// valid.
func (g *generator) through(n int) Segment {
	i := len(g.w.names) - 1 - min(g.draw("name", 4), g.draw("older", len(g.w.names)))
	s := Segment{Region: i, Window: true, Len: n}
	if b := g.w.names[i]; b != nil {
		s.Off = b.seg.Off + g.of(0, 0, max(0, b.seg.Len-n), -1)
	}
	return s
}

// bind draws a bind of a window of the endpoint's zone, or an unbind.
func (g *generator) bind() Command {
	if count(g.w.windows, func(m *window) bool { return m.open }) == 0 {
		return g.newWindow()
	}
	name := g.ep(isConnected, isDisconnected)
	if g.draw("bind elsewhere", 16) == 15 {
		name = g.anyEP()
	}
	p := g.w.ep(name)
	rmr := pickOne(g, 'w', g.w.windows, func(m *window) bool { return m.open && p != nil && m.within(p) })
	if p == nil {
		return New("bind", name, "rmr", rmr)
	}
	args := []any{"rmr", rmr, "cookie", g.w.step, "flags", g.flags(operations["bind"].flags &^ (unsignalled &^ p.reqFlags))}
	if g.draw("unbind", 6) == 5 {
		return New("bind", name, args...)
	}
	all := "REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC"
	priv := []string{all, all, all, all, all, "REMOTE_READ", "REMOTE_WRITE", "LOCAL_READ"}[g.draw("priv", 8)]
	seg := g.segment(p.zone, localRead|localWrite, -1)
	return New("bind", name, append(args, "priv", priv, "local", JoinSegments([]Segment{seg}))...)
}

// newWindow draws a new window of a zone or of one endpoint.
func (g *generator) newWindow() Command {
	if g.draw("of an endpoint", 3) == 2 {
		return New("rmr", g.name('w', len(g.w.windows)), "ep", g.ep(isConnected))
	}
	return New("rmr", g.name('w', len(g.w.windows)), "pz", g.zone())
}

func (g *generator) newSRQ() Command {
	return New("srq", g.name('q', len(g.w.srqs)), "pz", g.zone(), "recvs", g.of(0, 16, 4, 2, 1, -1), "iov", g.of(0, 1, 2, 4))
}

func (g *generator) sharedRecv() Command {
	if count(g.w.srqs, func(q *srq) bool { return q.open }) == 0 {
		return g.newSRQ()
	}
	name := pickOne(g, 'q', g.w.srqs, func(q *srq) bool { return q.open })
	q := g.w.srq(name)
	if q == nil {
		return New("srq_recv", name)
	}
	return New("srq_recv", name, "cookie", g.w.step, "local", JoinSegments(g.segments(g.howMany(q.iov), q.zone, localWrite)))
}
