package model

// newPoint draws a new service point, mostly a PSP.
func (g *generator) newPoint() Command {
	args := []any{"evd", g.evd(streamCR), "qual", g.of(0, 0, 7, 8, 9)}
	kind := "psp"
	if count(g.w.points, func(s *point) bool { return s.open && s.kind == "psp" }) > 0 {
		kind = []string{"psp", "rsp", "csp", "rsp"}[g.draw("kind", 4)]
	}
	switch kind {
	case "rsp":
		return New(kind, g.name('s', len(g.w.points)), append(args, "ep", g.ep(unconnected))...)
	case "psp":
		if g.draw("makes endpoints", 3) == 2 {
			args = append(args, "makes", "endpoints")
		}
	}
	backlog := 0
	switch g.draw("backlog", 8) {
	case 5:
		backlog = 2
	case 6:
		backlog = 1
	case 7:
		backlog = -1
	}
	return New(kind, g.name('s', len(g.w.points)), append(args, "backlog", backlog)...)
}

// reserve draws an RSP for an endpoint if two endpoints can connect, or else a new
// endpoint.
func (g *generator) reserve() Command {
	if count(g.w.eps, connectable) < 2 {
		return g.newEP()
	}
	return New("rsp", g.name('s', len(g.w.points)), "evd", g.evd(streamCR), "ep", g.ep(unconnected))
}

func (g *generator) freePoint() Command {
	name := g.any('s', len(g.w.points))
	kind := "psp"
	if s := g.w.point(name); s != nil && !g.rarely("as another kind") {
		kind = s.kind
	}
	return New(kind+"_free", name)
}

// handoff draws a handoff of a request, mostly to a point that listens.
func (g *generator) handoff() Command {
	return New("handoff", g.openCR(), "to", pickOne(g, 's', g.w.points, func(s *point) bool { return s.open && !s.used }))
}

// freeableEVD names a dispatcher that has no one-shots and holds no request with an
// endpoint of its own. If such a request's event were lost, nobody could answer the
// request, and the endpoint would keep its state.
func (g *generator) freeableEVD() string {
	name := g.any('e', len(g.w.evds))
	if d := g.w.evd(name); d != nil {
		if d.shots {
			return "-" // its one-shots end with it
		}
		for _, q := range d.queue {
			if q.cr != nil && q.cr.own != nil {
				return "-"
			}
		}
	}
	return name
}
