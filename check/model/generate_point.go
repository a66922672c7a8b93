package model

// newPoint makes a service point, mostly a public one.
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

// reserve makes an endpoint wait for a request, if there are enough others.
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

// handoff hands a request on, mostly to who listens.
func (g *generator) handoff() Command {
	return New("handoff", g.openCR(), "to", pickOne(g, 's', g.w.points, func(s *point) bool { return s.open && !s.used }))
}

// freeableEVD is a dispatcher that holds no request with an endpoint: if its event
// is lost nobody can answer it, and the endpoint stays what it is.
func (g *generator) freeableEVD() string {
	name := g.any('e', len(g.w.evds))
	if d := g.w.evd(name); d != nil {
		if d.shots {
			return "-" // its one-shots go with it
		}
		for _, q := range d.queue {
			if q.cr != nil && q.cr.own != nil {
				return "-"
			}
		}
	}
	return name
}
