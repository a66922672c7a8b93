package model

import "slices"

// eventCommands draws commands on dispatchers, CNOs and one-shots.
type eventCommands struct{ *generator }

const (
	allStreamNames = "SOFTWARE|CR|DTO|CONN|RMR|ASYNC"
	allStreams     = 0x1f1
)

// plainEVD returns the command for a dispatcher that takes every stream.
func (g eventCommands) plainEVD() Command {
	return New("evd", g.w.evds.next(), "qlen", 64, "max", 64, "streams", allStreamNames)
}

func (g eventCommands) newEVD() Command {
	const all = allStreamNames
	streams := g.one("streams", all, all, all, all, all, "DTO", "CR|CONN", "DTO|CONN")
	qlen := g.of(64, 64, 64, 32, 16, 8, 4, 2, 1)
	if g.rarely("no length") {
		qlen = 0
	}
	return New("evd", g.w.evds.next(), "qlen", qlen, "max", 64, "streams", streams)
}

// freeEVD draws the freeing of a dispatcher that has no one-shots and holds no
// request with an endpoint of its own. If such a request's event were lost, the
// program could not answer the request, and the endpoint would keep its state.
func (g eventCommands) freeEVD() Command {
	name := anyOf(g.generator, &g.w.evds)
	if d := g.w.evds.named(name); d != nil {
		holds := slices.ContainsFunc(d.queue, func(q queued) bool { return q.cr != nil && q.cr.own != nil })
		if d.shots || holds { // its one-shots end with it
			name = "-"
		}
	}
	return New("evd_free", name)
}

// notify draws a command on a CNO or on the notifications of a dispatcher.
func (g eventCommands) notify() Command {
	d := pick(g.generator, &g.w.evds, all)
	if g.draw("with a CNO", 2) == 1 {
		d = pick(g.generator, &g.w.evds, func(d *evd) bool { return d.cno != nil })
	}
	i := g.draw("notify", 12)
	switch {
	case i == 5, i < 5 && g.w.cnos.count(all) == 0:
		return New("cno", g.w.cnos.next())
	case i < 5:
		return New("evd_modify_cno", d, "cno", pick(g.generator, &g.w.cnos, all))
	}
	ops := []string{"evd_disable", "evd_disable", "evd_enable", "evd_enable", "evd_set_unwaitable", "evd_clear_unwaitable"}
	return New(ops[i-6], d)
}

func (g eventCommands) dequeue() Command {
	return New("dequeue", g.filled(), "n", g.of(8, 1, 2, 64, 0))
}

func (g eventCommands) wait() Command {
	return New("wait", g.filled(), "threshold", g.of(1, 2, 3, 4, 8, 16, 64, 65, 0))
}

// filled names a dispatcher that holds events.
func (g eventCommands) filled() string {
	return pick(g.generator, &g.w.evds, func(d *evd) bool { return len(d.queue) > 0 })
}

// block draws a wait for a little more than the dispatcher holds, or the end of
// such a wait.
func (g eventCommands) block() Command {
	blocked := func(d *evd) bool { return d.waiter != nil }
	if g.w.evds.count(blocked) > 0 && g.draw("unblock", 3) == 2 {
		return New("unblock", pick(g.generator, &g.w.evds, blocked))
	}
	name := pick(g.generator, &g.w.evds, func(d *evd) bool { return d.waiter == nil })
	n := 0
	if d := g.w.evds.named(name); d != nil {
		n = len(d.queue)
	}
	return New("block", name, "threshold", n+g.of(1, 2, 3, 4, 0, 65))
}

// oneShot draws a command that makes, waits for or releases a one-shot.
func (g eventCommands) oneShot() Command {
	switch i := g.draw("one-shots", 6); {
	case i == 4, g.w.shots.count(all) == 0:
		d := pick(g.generator, &g.w.evds, all)
		if !there(g.w.evds.named(d)) {
			d = "-"
		}
		return New("oneshot", g.w.shots.next(), "evd", d)
	case i == 5:
		return New("os_release", anyOf(g.generator, &g.w.shots))
	}
	return New("os_wait", pick(g.generator, &g.w.shots, func(s *shot) bool { return !s.idle() }))
}
