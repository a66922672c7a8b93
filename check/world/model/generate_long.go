package model

// longBytes is how much memory a long transfer moves: so much that an endpoint delivers its
// completion before the provider has handed out those that come together with it.
const longBytes = 64 << 10

// Long makes the programs of this world post long transfers, too, in batches with operations
// whose events go to one-shots, and mostly when somebody waits for the transfers' events.
func (w *World) Long() { w.long = true }

// long draws a batch of a long read or write and an operation with a one-shot, or what a
// program needs before it.
func (g postCommands) long() Command {
	name := g.ep(isConnected)
	p := g.w.eps.named(name)
	switch {
	case p == nil || p.peer == nil || p.req == nil:
		return New("status", name)
	case !g.w.hasLong(p.zone, localRead|localWrite):
		return longRegion(g, p.zone)
	case !g.w.hasLong(p.peer.zone, remoteRead|remoteWrite):
		return longRegion(g, p.peer.zone)
	case g.w.shots.count((*shot).idle) == 0:
		return New("oneshot", g.w.shots.next(), "evd", g.w.evds.name(g.w.evds.index(p.req)))
	case p.req.waiter == nil && p.req.cno == nil && g.draw("watched", 4) != 3:
		return New("block", g.w.evds.name(g.w.evds.index(p.req)), "threshold", len(p.req.queue)+1)
	}
	op := g.one("op", "read", "write")
	o := operations[op]
	first := New(op, name, "cookie", g.w.step, "flags", g.flags(o.flagsAt(p.reqFlags)),
		"local", JoinSegments([]Segment{g.longPiece(p.zone, o.local)}),
		"remote", JoinSegments([]Segment{g.longPiece(p.peer.zone, o.remote)}))
	second := g.requestOn(g.one("op", "fetch_add", "send_inv", "write", "cmp_swap"), name)
	second.Args = append(second.Args, "shot="+pick(g.generator, &g.w.shots, (*shot).idle))
	return New("batch", name, "0", first.asArgument(), "1", second.asArgument())
}

// isLong reports whether a region of the zone is long enough, with all the privileges.
func (r *region) isLong(z *zone, privileges int) bool {
	return r.zone == z && r.priv&privileges == privileges && len(r.cells) >= longBytes
}

func (w *World) hasLong(z *zone, privileges int) bool {
	return w.memory.regions.count(func(m *region) bool { return m.isLong(z, privileges) }) > 0
}

func longRegion(g postCommands, z *zone) Command {
	return New("lmr", g.w.memory.regions.next(), "pz", g.w.memory.zones.name(g.w.memory.zones.index(z)), "size", longBytes,
		"priv", "LOCAL_READ|LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC", "by", "alloc")
}

// longPiece draws a long segment.
func (g postCommands) longPiece(z *zone, privilege int) Segment {
	name := pick(g.generator, &g.w.memory.regions, func(m *region) bool { return m.isLong(z, privilege) })
	return Segment{Region: Index('m', name), Len: longBytes}
}
