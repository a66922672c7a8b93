package model

// newRegionOf draws a registration of another region's memory.
func (g *generator) newRegionOf() Command {
	c := g.newRegion()
	of := pickOne(g, 'm', g.w.regions, func(m *region) bool { return m.open })
	return New("lmr_of", c.On, "pz", c.Text("pz"), "of", of, "priv", c.Text("priv"))
}

// sync draws a synchronization of any memory.
func (g *generator) sync() Command {
	return New([]string{"sync_read", "sync_write"}[g.draw("sync", 2)], "-", "local", JoinSegments([]Segment{g.syncable(), g.syncable()}))
}

func (g *generator) syncable() Segment {
	s := Segment{Region: Index('m', g.any('m', len(g.w.regions))), Len: g.of(8, 1, 64, 0)}
	if m := g.w.at(s); m != nil && !g.rarely("out of bounds") {
		s.Len = min(s.Len, len(m.bytes))
	}
	return s
}

// dupConnect draws a duplicate of the connection of an endpoint that has connected,
// not of one that has accepted: DAT does not say where the peer of that one listens.
func (g *generator) dupConnect() Command {
	of := g.ep(isConnected)
	if o := g.w.ep(of); o != nil && o.state == isConnected && o.target == 0 {
		if of = "-"; o.peer != nil {
			of = o.peer.name
		}
	}
	who := g.ep(unconnected)
	if g.rarely("another") {
		who = g.anyEP()
	}
	return New("dup_connect", who, "of", of, "private", g.private())
}

// srqControl draws a change of a shared receive queue.
func (g *generator) srqControl() Command {
	name := pickOne(g, 'q', g.w.srqs, func(q *srq) bool { return q.open })
	n := 4
	if q := g.w.srq(name); q != nil {
		n = len(q.recvs)
	}
	switch g.draw("srq", 4) {
	case 0, 1:
		return New("srq_set_lw", name, "receives", max(-1, g.of(n, n+1, n-1, 0, 1, -1, 100)))
	}
	if g.rarely("too many") {
		return New("srq_resize", name, "recvs", tooMany)
	}
	return New("srq_resize", name, "recvs", g.of(n+1, n, n-1, 16, 32))
}

func (g *generator) setWatermark() Command {
	name := pickOne(g, 'p', g.w.eps, func(p *endpoint) bool { return p.state != gone && p.srq != nil })
	return New("set_watermark", name, "soft", g.of(0, 0, -1, 64, -2), "hard", g.of(-1, -1, 64, -1, -2))
}
