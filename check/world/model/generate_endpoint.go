package model

// endpointCommands draws commands that make and change endpoints and shared receive
// queues.
type endpointCommands struct{ *generator }

func (g endpointCommands) newEP() Command {
	recv, req, conn := g.evd(streamDTO), g.evd(streamDTO), g.evd(streamConn)
	for _, name := range []*string{&recv, &req, &conn} {
		if g.rarely("no dispatcher") {
			*name = "-"
		}
	}
	recvFlags, reqFlags := "", ""
	flags := g.draw("completion flags", 10)
	if flags > 6 && g.w.evds.count(func(d *evd) bool { return !d.fed() || !d.fits(0, nil) }) == 0 {
		return eventCommands(g).plainEVD() // these classes share no dispatcher with others
	}
	switch flags {
	case 7:
		recvFlags, recv = "UNSIGNALLED", g.evdFor(unsignalled)
	case 8:
		recvFlags, recv = "SOLICITED", g.evdFor(solicited)
	case 9:
		recvFlags, recv = "UNSIGNALLED", g.evdFor(unsignalled)
		reqFlags, req = "UNSIGNALLED", g.evdFor(unsignalled)
	}
	args := []any{
		"pz", g.zone(), "recv", recv, "req", req, "conn", conn,
		"recvs", g.of(0, 16, 8, 4, 3, 2, 1, -1), "reqs", g.of(0, 16, 8, 4, 3, 2, 1, -1),
		"recviov", g.of(0, 4, 2, 1), "reqiov", g.of(0, 4, 2, 1),
		"maxmsg", g.of(0, 0, 256, 64), "maxrdma", g.of(0, 0, 256, 64),
		"recvflags", recvFlags, "reqflags", reqFlags,
	}
	if len(g.w.srqs.all) > 0 && g.draw("shared", 2) == 1 {
		args = append(args, "srq", pick(g.generator, &g.w.srqs, all))
	}
	if g.rarely("reads") {
		args = append(args, "readsin", g.of(0, -1), "readsout", g.of(-1, 0))
	}
	if g.draw("rnr", 4) == 3 {
		args = append(args, "rnr", "fail")
	}
	switch {
	case g.rarely("too much"):
		args = append(args[:8:8], "recvs", tooMany)
	case g.rarely("bad flags"):
		args = append(args, "reqflags", "SUPPRESS")
	}
	return New("ep", g.w.eps.next(), args...)
}

func (g endpointCommands) reset() Command {
	if g.draw("reset another", 8) == 7 {
		return New("reset", g.anyEP())
	}
	return New("reset", g.ep(isDisconnected))
}

// modify draws a change of one or two fields of an endpoint.
func (g endpointCommands) modify() Command {
	name := g.ep(modifiable...)
	if g.draw("in another state", 8) == 7 {
		name = g.anyEP()
	}
	return g.modifyEP(name)
}

func (g endpointCommands) modifyEP(name string) Command {
	p := g.w.eps.named(name)
	if p == nil {
		return New("modify", name, "reqs", 4)
	}
	var args []any
	for range 1 + g.draw("fields", 3) {
		args = append(args, g.field(p)...)
	}
	if p.state == tentative && p.zone == nil && g.draw("complete", 4) != 0 {
		args = []any{"pz", g.zone(), "recv", g.evdFor(0), "req", g.evdFor(0), "conn", g.evd(streamConn)}
	}
	switch {
	case g.rarely("bad field"):
		args = append(args, "field", "bad")
	case g.rarely("too much"):
		args = []any{"recvs", tooMany}
	case g.rarely("bad flags"):
		args = []any{"reqflags", "SUPPRESS"}
	}
	return New("modify", name, args...)
}

// field draws a new value of one field.
func (g endpointCommands) field(p *endpoint) []any {
	switch g.draw("field", 10) {
	case 0:
		return []any{"recv", g.evdFor(classOf(p.recvFlags))}
	case 1:
		return []any{"req", g.evdFor(p.reqFlags & unsignalled)}
	case 2:
		return []any{"conn", g.evd(streamConn)}
	case 3:
		return []any{"pz", g.zone()}
	case 4:
		return []any{"recvs", g.of(-1, 4, 8, 16, 17, 32)}
	case 5:
		return []any{"reqs", g.of(-1, 4, 8, 16, 17, 32)}
	case 6:
		return []any{g.one("iov", "recviov", "reqiov", "readiov", "writeiov"), g.of(-1, 2, 4, 5)}
	case 7:
		return []any{g.one("size", "maxmsg", "maxrdma"), g.of(64, 128, 256)}
	case 8:
		return []any{g.one("flags of", "recvflags", "reqflags"), g.one("flags", "NONE", "UNSIGNALLED", "SOLICITED")}
	}
	return []any{"rnr", g.one("rnr", "fail", "wait")}
}

func (g endpointCommands) setWatermark() Command {
	name := pick(g.generator, &g.w.eps, func(p *endpoint) bool { return p.srq != nil })
	return New("set_watermark", name, "soft", g.of(0, 0, -1, 64, -2), "hard", g.of(-1, -1, 64, -1, -2))
}

func (g endpointCommands) newSRQ() Command {
	return New("srq", g.w.srqs.next(), "pz", g.zone(), "recvs", g.of(0, 16, 4, 2, 1, -1), "iov", g.of(0, 1, 2, 4))
}

// changeSRQ draws a change of a shared receive queue.
func (g endpointCommands) changeSRQ() Command {
	name := pick(g.generator, &g.w.srqs, all)
	n := 4
	if q := g.w.srqs.named(name); q != nil {
		n = len(q.recvs)
	}
	if g.draw("srq", 4) < 2 {
		return New("srq_set_lw", name, "receives", max(-1, g.of(n, n+1, n-1, 0, 1, -1, 100)))
	}
	if g.rarely("too many") {
		return New("srq_resize", name, "recvs", tooMany)
	}
	return New("srq_resize", name, "recvs", g.of(n+1, n, n-1, 16, 32))
}
