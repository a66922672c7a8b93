package model

import "strconv"

// batch draws a post of several requests or several receives.
func (g *generator) batch() Command {
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
			c = g.requestOn([]string{"send", "send", "write", "read", "write_imm", "fetch_add", "send_inv"}[g.draw("op", 7)], name)
		}
		if len(g.w.shots) > 0 && g.draw("one-shot", 4) == 3 {
			c.Args = append(c.Args, "shot="+pickOne(g, 'o', g.w.shots, func(s *shot) bool { return !s.armed && s.event == nil }))
		}
		args = append(args, strconv.Itoa(i), c.asArgument())
	}
	return New("batch", name, args...)
}

// shots draws a command that makes, waits for or releases a one-shot.
func (g *generator) shots() Command {
	some := count(g.w.shots, func(*shot) bool { return true })
	switch i := g.draw("one-shots", 6); {
	case some == 0 || i == 4:
		d := pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open })
		if e := g.w.evd(d); e != nil && !e.open {
			d = "-"
		}
		return New("oneshot", g.name('o', len(g.w.shots)), "evd", d)
	case i == 5:
		return New("os_release", g.any('o', len(g.w.shots)))
	}
	return New("os_wait", pickOne(g, 'o', g.w.shots, func(s *shot) bool { return s.armed || s.event != nil }))
}
