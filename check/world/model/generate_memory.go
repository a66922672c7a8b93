package model

import "strings"

// memoryCommands draws commands on zones, regions and windows.
type memoryCommands struct{ *generator }

func (g memoryCommands) newRegion() Command {
	priv := "LOCAL_READ|LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC"
	if g.draw("few privileges", 4) == 3 {
		names := strings.Split(priv, "|")
		i := g.draw("missing", len(names))
		priv = strings.Join(append(names[:i:i], names[i+1:]...), "|")
	}
	by := g.sometimes("alloc", "alloc")
	size := g.of(64, 128, 256, 8, 1)
	if g.rarely("empty") {
		size = 0
	}
	return New("lmr", g.w.memory.regions.next(), "pz", g.zone(), "size", size, "priv", priv, "by", by)
}

// newRegionOf draws a registration of another region's memory.
func (g memoryCommands) newRegionOf() Command {
	c := g.newRegion()
	of := pick(g.generator, &g.w.memory.regions, all)
	return New("lmr_of", c.On, "pz", c.Text("pz"), "of", of, "priv", c.Text("priv"))
}

// freeRegion draws the freeing of a region to which no window is being bound: if
// such a bind fails, DAT does not say whether the window stays bound.
func (g memoryCommands) freeRegion() Command {
	name := anyOf(g.generator, &g.w.memory.regions)
	for _, m := range g.w.memory.windows.live() {
		if m.pending != nil && m.pending.seg.Region == Index('m', name) {
			name = "-"
		}
	}
	return New("lmr_free", name)
}

// sync draws a synchronization of any memory.
func (g memoryCommands) sync() Command {
	return New(g.one("sync", "sync_read", "sync_write"), "-", "local", JoinSegments([]Segment{g.syncable(), g.syncable()}))
}

func (g memoryCommands) syncable() Segment {
	s := Segment{Region: Index('m', anyOf(g.generator, &g.w.memory.regions)), Len: g.of(8, 1, 64, 0)}
	if m := g.w.memory.at(s); m != nil && !g.rarely("out of bounds") {
		s.Len = min(s.Len, len(m.cells))
	}
	return s
}

// newWindow draws a new window of a zone or of one endpoint.
func (g memoryCommands) newWindow() Command {
	if g.draw("of an endpoint", 3) == 2 {
		return New("rmr", g.w.memory.windows.next(), "ep", g.ep(isConnected))
	}
	return New("rmr", g.w.memory.windows.next(), "pz", g.zone())
}

// bind draws a bind of a window of the endpoint's zone, or an unbind.
func (g memoryCommands) bind() Command {
	if g.w.memory.windows.count(all) == 0 {
		return g.newWindow()
	}
	name := g.ep(isConnected, isDisconnected)
	if g.draw("bind elsewhere", 16) == 15 {
		name = g.anyEP()
	}
	p := g.w.eps.named(name)
	rmr := pick(g.generator, &g.w.memory.windows, func(m *window) bool { return p != nil && m.belongs(p) })
	if p == nil {
		return New("bind", name, "rmr", rmr)
	}
	args := []any{"rmr", rmr, "cookie", g.w.step, "flags", g.flags(operations["bind"].flagsAt(p.reqFlags))}
	if g.draw("unbind", 6) == 5 {
		return New("bind", name, args...)
	}
	every := "REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC"
	priv := g.one("priv", every, every, every, every, every, "REMOTE_READ", "REMOTE_WRITE", "LOCAL_READ")
	seg := g.segment(p.zone, localRead|localWrite, -1)
	return New("bind", name, append(args, "priv", priv, "local", JoinSegments([]Segment{seg}))...)
}
