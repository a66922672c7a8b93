package model

// modify draws a change of one or two fields of an endpoint.
func (g *generator) modify() Command {
	name := g.ep(modifiable...)
	if g.draw("in another state", 8) == 7 {
		name = g.anyEP()
	}
	return g.modifyEP(name)
}

func (g *generator) modifyEP(name string) Command {
	p := g.w.ep(name)
	if p == nil {
		return New("modify", name, "reqs", 4)
	}
	var args []any
	for range 1 + g.draw("fields", 3) {
		switch g.draw("field", 10) {
		case 0:
			args = append(args, "recv", g.evdOf(p.recvFlags&(unsignalled|solicited)))
		case 1:
			args = append(args, "req", g.evdOf(p.reqFlags&unsignalled))
		case 2:
			args = append(args, "conn", g.evd(streamConn))
		case 3:
			args = append(args, "pz", g.zone())
		case 4:
			args = append(args, "recvs", g.of(-1, 4, 8, 16, 17, 32))
		case 5:
			args = append(args, "reqs", g.of(-1, 4, 8, 16, 17, 32))
		case 6:
			args = append(args, []string{"recviov", "reqiov", "readiov", "writeiov"}[g.draw("iov", 4)], g.of(-1, 2, 4, 5))
		case 7:
			args = append(args, []string{"maxmsg", "maxrdma"}[g.draw("size", 2)], g.of(64, 128, 256))
		case 8:
			args = append(args, []string{"recvflags", "reqflags"}[g.draw("flags of", 2)], []string{"NONE", "UNSIGNALLED", "SOLICITED"}[g.draw("flags", 3)])
		case 9:
			args = append(args, "rnr", []string{"fail", "wait"}[g.draw("rnr", 2)])
		}
	}
	if p.state == tentative && p.zone == nil && g.draw("complete", 4) != 0 {
		args = []any{"pz", g.zone(), "recv", g.evdOf(0), "req", g.evdOf(0), "conn", g.evd(streamConn)}
	}
	switch {
	case g.rarely("bad mask"):
		args = append(args, "mask", "bad")
	case g.rarely("too much"):
		args = []any{"recvs", tooMany}
	case g.rarely("bad flags"):
		args = []any{"reqflags", "SUPPRESS"}
	}
	return New("modify", name, args...)
}
