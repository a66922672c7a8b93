package model

const (
	allStreamNames = "SOFTWARE|CR|DTO|CONN|RMR|ASYNC"
	allStreams     = 0x1f1
)

// plainEVD returns the command for a dispatcher that takes every stream.
func (g *generator) plainEVD() Command {
	return New("evd", g.name('e', len(g.w.evds)), "qlen", 64, "max", 64, "streams", allStreamNames)
}

func (g *generator) newEVD() Command {
	streams := allStreamNames
	switch g.draw("streams", 8) {
	case 5:
		streams = "DTO"
	case 6:
		streams = "CR|CONN"
	case 7:
		streams = "DTO|CONN"
	}
	qlen := g.of(64, 64, 64, 32, 16, 8, 4, 2, 1)
	if g.rarely("no length") {
		qlen = 0
	}
	return New("evd", g.name('e', len(g.w.evds)), "qlen", qlen, "max", 64, "streams", streams)
}

// notify draws a command on a CNO or on the notifications of a dispatcher.
func (g *generator) notify() Command {
	d := pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open })
	if i := g.draw("with a CNO", 2); i == 1 {
		d = pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open && d.cno != nil })
	}
	open := func(n *cno) bool { return n.open }
	switch g.draw("notify", 12) {
	case 0, 1, 2, 3, 4:
		if count(g.w.cnos, open) == 0 {
			return New("cno", g.name('n', len(g.w.cnos)))
		}
		return New("evd_modify_cno", d, "cno", pickOne(g, 'n', g.w.cnos, open))
	case 5:
		return New("cno", g.name('n', len(g.w.cnos)))
	case 6, 7:
		return New("evd_disable", d)
	case 8, 9:
		return New("evd_enable", d)
	case 10:
		return New("evd_set_unwaitable", d)
	}
	return New("evd_clear_unwaitable", d)
}

func (g *generator) dequeue() Command {
	d := pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open && len(d.queue) > 0 })
	return New("dequeue", d, "n", g.of(8, 1, 2, 64, 0))
}

func (g *generator) wait() Command {
	d := pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open && len(d.queue) > 0 })
	return New("wait", d, "threshold", g.of(1, 2, 3, 4, 8, 16, 64, 65, 0))
}

// block draws a wait for a little more than the dispatcher holds, or the end of
// such a wait.
func (g *generator) block() Command {
	blocked := func(d *evd) bool { return d.waiter != nil }
	if count(g.w.evds, blocked) > 0 && g.draw("unblock", 3) == 2 {
		return New("unblock", pickOne(g, 'e', g.w.evds, blocked))
	}
	name := pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open && d.waiter == nil })
	n := 0
	if d := g.w.evd(name); d != nil {
		n = len(d.queue)
	}
	return New("block", name, "threshold", n+g.of(1, 2, 3, 4, 0, 65))
}
