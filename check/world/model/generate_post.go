package model

import "strconv"

// postCommands draws posts.
type postCommands struct{ *generator }

func (g postCommands) recv() Command {
	name := g.ep(isConnected, unconnected, activePending, disconnectPending, isDisconnected, reserved, passivePending, tentative)
	if g.draw("early", 8) == 7 {
		name = g.rareEP()
	}
	return g.recvOn(name)
}

func (g postCommands) recvOn(name string) Command {
	p := g.w.eps.named(name)
	if p == nil {
		return New("recv", name)
	}
	n := g.howMany(p.recvIOV)
	return New("recv", name, "cookie", g.w.step, "flags", g.flags(operations["recv"].flagsAt(p.recvFlags)),
		"local", JoinSegments(g.segments(n, p.zone, localWrite)))
}

func (g postCommands) sharedRecv() Command {
	if g.w.srqs.count(all) == 0 {
		return endpointCommands(g).newSRQ()
	}
	name := pick(g.generator, &g.w.srqs, all)
	q := g.w.srqs.named(name)
	if q == nil {
		return New("srq_recv", name)
	}
	return New("srq_recv", name, "cookie", g.w.step, "local", JoinSegments(g.segments(g.howMany(q.iov), q.zone, localWrite)))
}

// howMany draws the number of a post's segments: mostly one, rarely more than
// allowed.
func (g postCommands) howMany(iov int) int {
	switch {
	case g.rarely("too many"):
		return iov + 1
	case g.draw("many", 4) == 3:
		return g.draw("segments", iov+1)
	}
	return 1
}

func (g postCommands) request(op string) Command {
	name := g.ep(isConnected, isDisconnected)
	if g.draw("wrong state", 8) == 7 {
		name = g.rareEP()
	}
	return g.requestOn(op, name)
}

func (g postCommands) requestOn(op, name string) Command {
	p := g.w.eps.named(name)
	if p == nil {
		return New(op, name)
	}
	if (op == "write_imm" || op == "send_inv") && p.peer != nil && p.peer.srq != nil {
		op = "send" // DAT does not say whether one that fails has taken a shared receive
	}
	o := operations[op]
	args := []any{"cookie", g.w.step, "flags", g.flags(o.flagsAt(p.reqFlags))}
	switch {
	case o.kind == atomics:
		return New(op, name, append(args, "add", g.w.step, "cmp", g.of(0, 1),
			"local", JoinSegments([]Segment{g.segment(p.zone, o.local, 8)}), "remote", g.remote(p, o.remote, 8))...)
	case op == "read_rmr":
		n := g.of(8, 16, 1, 0)
		own := &endpoint{params: params{zone: p.zone}}
		return New(op, name, append(args, "local", g.remote(own, remoteWrite, n), "remote", g.remote(p, o.remote, n))...)
	}
	segs := g.segments(g.howMany(p.segments(o)), p.zone, o.local)
	args = append(args, "local", JoinSegments(segs))
	switch {
	case op == "send_inv":
		args = append(args, "remote", g.remote(p, remoteWrite, 0))
	case o.remote != 0:
		args = append(args, "remote", g.remote(p, o.remote, total(segs)))
	}
	if op == "write_imm" {
		args = append(args, "imm", g.w.step)
	}
	return New(op, name, args...)
}

// remote draws the remote segment for n local bytes.
func (g postCommands) remote(p *endpoint, privilege, n int) string {
	z := p.zone
	if p.peer != nil {
		z = p.peer.zone
	}
	if g.rarely("other length") {
		n = max(0, n+g.of(-1, 1))
	}
	if len(g.w.memory.binds) > 0 && g.draw("window", 2) == 1 {
		return JoinSegments([]Segment{g.windowPiece(n)})
	}
	s := g.segment(z, privilege, n)
	if privilege == remoteAtomic {
		s.Off -= s.Off % 8 * (1 - number(g.rarely("misaligned")))
	}
	return JoinSegments([]Segment{s})
}

// windowPiece draws a piece of what a bind has named, mostly of a bind that still
// holds.
func (g postCommands) windowPiece(n int) Segment {
	i := len(g.w.memory.binds) - 1 - min(g.draw("name", 4), g.draw("older", len(g.w.memory.binds)))
	s := Segment{Region: i, Window: true, Len: n}
	if b := g.w.memory.binds[i]; b != nil {
		s.Off = b.seg.Off + g.of(0, 0, max(0, b.seg.Len-n), -1)
	}
	return s
}

// batch draws a post of several requests or several receives.
func (g postCommands) batch() Command {
	name := g.ep(isConnected, isDisconnected)
	if g.draw("in any state", 8) == 7 {
		name = g.anyEP()
	}
	recvs := g.draw("receives", 3) == 2
	var args []any
	for i := range 2 + g.draw("more", 4) {
		var c Command
		if recvs {
			c = g.recvOn(name)
		} else {
			c = g.requestOn(g.one("op", "send", "send", "write", "read", "write_imm", "fetch_add", "send_inv"), name)
		}
		if len(g.w.shots.all) > 0 && g.draw("one-shot", 4) == 3 {
			c.Args = append(c.Args, "shot="+pick(g.generator, &g.w.shots, (*shot).idle))
		}
		args = append(args, strconv.Itoa(i), c.asArgument())
	}
	return New("batch", name, args...)
}
