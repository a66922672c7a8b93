package model

// connectionCommands draws commands on connections, their requests and service
// points.
type connectionCommands struct{ *generator }

func (g connectionCommands) connect() Command {
	name := g.unconnected("connect again")
	addr, timeout := g.sometimes("nowhere", "nowhere"), g.sometimes("negative", "negative")
	to := pick(g.generator, &g.w.points, public)
	if g.w.points.count(reservedPoint) > 0 && g.draw("to one that is reserved", 4) != 0 {
		to = pick(g.generator, &g.w.points, reservedPoint)
	}
	op := "connect"
	if g.draw("common", 4) == 3 {
		op = "common_connect"
		if g.rarely("malformed") {
			addr = "malformed"
		}
	}
	return New(op, name, "to", to, "private", g.private(), "addr", addr, "timeout", timeout)
}

// unconnected names an endpoint that may connect, and rarely another.
func (g connectionCommands) unconnected(another string) string {
	name := g.ep(unconnected)
	if g.rarely(another) {
		return g.anyEP()
	}
	return name
}

// dupConnect draws a duplicate of the connection of an endpoint that has connected,
// not of one that has accepted: DAT does not say where the peer of that one listens.
func (g connectionCommands) dupConnect() Command {
	of := g.ep(isConnected)
	if o := g.w.eps.named(of); o != nil && o.state == isConnected && o.target == 0 {
		if of = "-"; o.peer != nil {
			of = o.peer.name
		}
	}
	return New("dup_connect", g.unconnected("another"), "of", of, "private", g.private())
}

func (g connectionCommands) accept() Command {
	name := g.cr()
	q := g.w.crs.named(name)
	if q != nil && q.own != nil && g.draw("another endpoint", 8) != 7 {
		if p := q.own; p.zone == nil || p.conn == nil {
			return endpointCommands(g).modifyEP(p.name)
		}
		return New("accept", name, "ep", g.one("named", "-", q.own.name), "private", g.private())
	}
	return New("accept", name, "ep", g.ep(unconnected), "private", g.private())
}

func (g connectionCommands) disconnect() Command {
	busy := func(p *endpoint) bool { return p.state == isConnected && len(p.reqs) > 0 }
	if g.w.eps.count(busy) > 0 && g.draw("drain", 2) == 1 {
		return New("disconnect", pick(g.generator, &g.w.eps, busy), "how", "graceful")
	}
	how := ""
	switch i := g.draw("how", 16); {
	case i == 15:
		how = "bad"
	case i >= 8:
		how = "graceful"
	}
	if g.rarely("disconnect what is not connected") {
		return New("disconnect", g.anyEP(), "how", how)
	}
	return New("disconnect", g.ep(isConnected, disconnectPending, activePending), "how", how)
}

// newPoint draws a new service point, mostly a PSP.
func (g connectionCommands) newPoint() Command {
	args := []any{"evd", g.evd(streamCR), "qual", g.of(0, 0, 7, 8, 9)}
	kind := "psp"
	if g.w.points.count(public) > 0 {
		kind = g.one("kind", "psp", "rsp", "csp", "rsp")
	}
	if kind == "rsp" {
		return New(kind, g.w.points.next(), append(args, "ep", g.ep(unconnected))...)
	}
	if kind == "psp" && g.draw("makes endpoints", 3) == 2 {
		args = append(args, "makes", "endpoints")
	}
	backlog := []int{0, 0, 0, 0, 0, 2, 1, -1}[g.draw("backlog", 8)]
	return New(kind, g.w.points.next(), append(args, "backlog", backlog)...)
}

// reserve draws an RSP for an endpoint if two endpoints can connect, or else a new
// endpoint.
func (g connectionCommands) reserve() Command {
	if g.w.eps.count(connectable) < 2 {
		return endpointCommands(g).newEP()
	}
	return New("rsp", g.w.points.next(), "evd", g.evd(streamCR), "ep", g.ep(unconnected))
}

func (g connectionCommands) freePoint() Command {
	name := anyOf(g.generator, &g.w.points)
	kind := "psp"
	if s := g.w.points.named(name); s != nil && !g.rarely("as another kind") {
		kind = s.kind
	}
	return New(kind+"_free", name)
}

// handoff draws a handoff of a request, mostly to a point that listens.
func (g connectionCommands) handoff() Command {
	return New("handoff", g.cr(), "to", pick(g.generator, &g.w.points, func(s *point) bool { return !s.used }))
}
