package model

import "strings"

// Draw returns a number below n; label says what for. Small numbers make simple
// programs.
type Draw func(label string, n int) int

// Next draws the next command of a program in this world. Mostly the command makes
// sense; now and then its arguments are bad, its objects freed or its endpoint in
// the wrong state.
func (w *World) Next(draw Draw) Command {
	g := &generator{w, draw}
	if c, ok := g.needed(); ok {
		return c
	}
	if w.long && draw("long", 4) == 3 {
		return postCommands{g}.long()
	}
	i := draw("command", totalWeight)
	for _, k := range kinds {
		if i < k.weight {
			return k.make(g)
		}
		i -= k.weight
	}
	panic("unreachable")
}

// generator draws arguments. The types that embed it draw the commands on some
// objects of DAT.
type generator struct {
	w    *World
	draw Draw
}

// kind is a kind of command, which is drawn the more often the more it weighs.
type kind struct {
	weight int
	make   func(*generator) Command
}

// by makes a function of a generator of a method of a type that embeds it.
func by[T ~struct{ *generator }](draw func(T) Command) func(*generator) Command {
	return func(g *generator) Command { return draw(T{g}) }
}

var (
	kinds       []kind
	totalWeight int
)

func init() {
	kinds = []kind{
		{2, func(g *generator) Command { return New("status", g.anyEP()) }},
		{14, request("send")},
		{16, by(postCommands.recv)},
		{12, by(eventCommands.dequeue)},
		{6, request("write")},
		{6, request("read")},
		{4, by(postCommands.sharedRecv)},
		{5, by(connectionCommands.connect)},
		{4, by(connectionCommands.accept)},
		{5, by(connectionCommands.disconnect)},
		{4, by(endpointCommands.reset)},
		{4, by(eventCommands.wait)},
		{4, by(endpointCommands.modify)},
		{6, by(postCommands.batch)},
		{3, by(eventCommands.oneShot)},
		{3, by(eventCommands.block)},
		{1, by(memoryCommands.newRegionOf)},
		{1, by(connectionCommands.dupConnect)},
		{2, by(endpointCommands.changeSRQ)},
		{1, by(endpointCommands.setWatermark)},
		{1, func(*generator) Command { return New("async", "-") }},
		{2, func(g *generator) Command { return New(g.one("count", "recv_query", "counters"), g.anyEP()) }},
		{1, by(memoryCommands.sync)},
		{3, request("write_imm")},
		{3, request("send_inv")},
		{2, request("read_rmr")},
		{2, request("fetch_add")},
		{2, request("cmp_swap")},
		{3, func(g *generator) Command { return New("post_se", g.evd(streamSoftware), "data", g.w.step) }},
		{1, by(endpointCommands.newSRQ)},
		{1, func(g *generator) Command { return New("srq_free", anyOf(g, &g.w.srqs)) }},
		{1, func(g *generator) Command { return New("srq_query", anyOf(g, &g.w.srqs)) }},
		{1, func(g *generator) Command { return New("reject", g.cr(), "private", g.private()) }},
		{3, by(endpointCommands.newEP)},
		{2, by(memoryCommands.newRegion)},
		{2, by(eventCommands.newEVD)},
		{1, func(g *generator) Command { return New("pz", g.w.memory.zones.next()) }},
		{1, func(g *generator) Command { return New("ep_free", g.anyEP()) }},
		{1, by(memoryCommands.freeRegion)},
		{1, by(eventCommands.freeEVD)},
		{2, by(connectionCommands.freePoint)},
		{2, by(connectionCommands.newPoint)},
		{2, by(connectionCommands.reserve)},
		{1, func(g *generator) Command { return New("sp_query", anyOf(g, &g.w.points)) }},
		{2, by(connectionCommands.handoff)},
		{1, func(g *generator) Command { return New("pz_free", anyOf(g, &g.w.memory.zones)) }},
		{1, func(g *generator) Command {
			return New("evd_resize", anyOf(g, &g.w.evds), "qlen", g.of(0, 1, 2, 4, 16, 64, 65))
		}},
		{8, by(eventCommands.notify)},
		{2, by(memoryCommands.newWindow)},
		{8, by(memoryCommands.bind)},
		{1, func(g *generator) Command { return New("rmr_free", anyOf(g, &g.w.memory.windows)) }},
		{1, func(g *generator) Command { return New("rmr_query", anyOf(g, &g.w.memory.windows)) }},
		{6, func(g *generator) Command {
			return New("cno_wait", pick(g, &g.w.cnos, func(n *cno) bool { return n.used() }))
		}},
		{1, func(g *generator) Command { return New("cno_free", anyOf(g, &g.w.cnos)) }},
		{1, func(g *generator) Command { return New("lmr_query", anyOf(g, &g.w.memory.regions)) }},
		{1, func(g *generator) Command { return New("evd_query", anyOf(g, &g.w.evds)) }},
		{1, func(g *generator) Command { return New("ep_query", g.anyEP()) }},
		{1, func(g *generator) Command { return New("cr_query", anyOf(g, &g.w.crs)) }},
	}
	for _, k := range kinds {
		totalWeight += k.weight
	}
}

func request(op string) func(*generator) Command {
	return func(g *generator) Command { return postCommands{g}.request(op) }
}

// needed returns a command without which no program goes on or, most of the time,
// the next step towards a connection.
func (g *generator) needed() (c Command, ok bool) {
	w := g.w
	connection := connectionCommands{g}
	plain := func(d *evd) bool { return d.takes == allStreams && d.qlen >= 16 && d.fits(0, nil) }
	switch {
	case w.memory.zones.count(all) == 0:
		return New("pz", w.memory.zones.next()), true
	case w.memory.regions.count(all) == 0:
		return memoryCommands{g}.newRegion(), true
	case w.evds.count(plain) == 0:
		return eventCommands{g}.plainEVD(), true
	case w.points.count(public) == 0:
		return connection.newPoint(), true
	case w.eps.count(all) < 2:
		return endpointCommands{g}.newEP(), true
	}
	if w.points.count(reservedPoint) > 0 && w.eps.count(connectable) > 0 && g.draw("come", 3) == 2 {
		return connection.connect(), true // the earlier its request comes, the longer the endpoint is seen in the state that follows
	}
	if w.eps.count(func(p *endpoint) bool { return p.state == isConnected }) >= 2 || g.draw("hurry", 3) == 0 {
		return c, false
	}
	unseen := func(p *endpoint) bool { return p.state == activePending && w.crs.index(p.request) < 0 }
	switch {
	case w.crs.count(func(q *cr) bool { return q.waits() && q.own == nil }) > 0:
		return connection.accept(), true
	case w.eps.count(unseen) > 0:
		return eventCommands{g}.dequeue(), true
	case w.eps.count(connectable) >= 2:
		return connection.connect(), true
	}
	return c, false
}

func all[T any](T) bool { return true }

func connectable(p *endpoint) bool { return p.state == unconnected && p.conn != nil }

func public(s *point) bool { return s.kind == "psp" }

// reservedPoint reports whether a point is an RSP whose endpoint still waits for a
// request.
func reservedPoint(s *point) bool { return !s.used && s.ep != nil }

// rarely is true once in a dozen times, at most.
func (g *generator) rarely(label string) bool { return g.draw(label, 16) == 15 }

// sometimes returns text rarely, and otherwise "".
func (g *generator) sometimes(label, text string) string {
	if g.rarely(label) {
		return text
	}
	return ""
}

func (g *generator) of(choices ...int) int { return choices[g.draw("choice", len(choices))] }

func (g *generator) one(label string, choices ...string) string {
	return choices[g.draw(label, len(choices))]
}

// anyOf names an object, open or freed, and rarely none.
func anyOf[T object](g *generator, from *objects[T]) string {
	n := len(from.all)
	if n == 0 || g.rarely("no object") {
		return "-"
	}
	return from.name(n - 1 - g.draw("object", n))
}

// pick names an object that is right, if there is one, and rarely another.
func pick[T object](g *generator, from *objects[T], right func(T) bool) string {
	var good []int
	for i, x := range from.live() {
		if right(x) {
			good = append(good, i)
		}
	}
	if len(good) == 0 || g.rarely("wrong object") {
		return anyOf(g, from)
	}
	return from.name(good[g.draw("object", len(good))])
}

// anyEP names an endpoint in any state, sometimes in one that is rarely reached.
func (g *generator) anyEP() string {
	if g.draw("seldom", 3) == 2 {
		return g.rareEP()
	}
	return anyOf(g, &g.w.eps)
}

// rareEP names an endpoint in one of the states that are rarely reached.
func (g *generator) rareEP() string {
	return g.ep(g.of(disconnectPending, activePending, reserved, passivePending, tentative))
}

func (g *generator) ep(states ...int) string {
	return pick(g, &g.w.eps, func(p *endpoint) bool { return p.in(states...) })
}

func (g *generator) evd(stream int) string {
	return pick(g, &g.w.evds, func(d *evd) bool { return d.takes&stream != 0 && d.fits(0, nil) })
}

// evdFor names a dispatcher for completions of a class.
func (g *generator) evdFor(class int) string {
	return pick(g, &g.w.evds, func(d *evd) bool { return d.takes&streamDTO != 0 && d.fits(class, nil) })
}

func (g *generator) zone() string { return pick(g, &g.w.memory.zones, all) }

// cr names a request that waits for an answer.
func (g *generator) cr() string { return pick(g, &g.w.crs, all) }

// private draws the length of the private data of a call.
func (g *generator) private() int {
	if g.rarely("much private data") {
		return g.w.maxPrivate + g.draw("more", 2)
	}
	return g.of(0, 1, 5, 64)
}

// flags draws the completion flags of a post, rarely illegal ones.
func (g *generator) flags(legal int) string {
	var names []string
	for _, n := range []string{"SUPPRESS", "SOLICITED", "UNSIGNALLED", "FENCE"} {
		likely := legal&Flags[n] != 0
		if likely && g.draw(n, 4) == 3 || !likely && g.draw(n, 32) == 31 {
			names = append(names, n)
		}
	}
	return strings.Join(names, "|")
}

// segments draws n local segments for an endpoint of zone z.
func (g *generator) segments(n int, z *zone, privilege int) (segs []Segment) {
	for range n {
		segs = append(segs, g.segment(z, privilege, -1))
	}
	return segs
}

// segment draws a piece of a region; with size -1 the length is drawn, too.
func (g *generator) segment(z *zone, privilege, size int) Segment {
	s := Segment{Region: Index('m', pick(g, &g.w.memory.regions, func(m *region) bool {
		return m.zone == z && m.priv&privilege != 0 && len(m.cells) >= size
	}))}
	length := 64
	if m := g.w.memory.at(s); m != nil {
		length = len(m.cells)
	}
	s.Off = min(g.of(0, 8, 16, 24, 1), length)
	s.Len = min(g.of(8, 16, 4, 32, 1, 0, 64), length-s.Off)
	if size >= 0 {
		s.Len = size
		s.Off = max(0, min(s.Off, length-size))
	}
	if g.rarely("out of bounds") {
		s.Off, s.Len = g.of(length, length-7, 0, -1), g.of(8, 1, length+1)
	}
	return s
}
