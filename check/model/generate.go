package model

import (
	"fmt"
	"strings"
)

// Draw returns a number below n; label says what for. Small numbers make simple
// programs.
type Draw func(label string, n int) int

// Next draws the next command of a program in this world. Mostly the command makes
// sense; now and then its arguments are bad, its objects freed or its endpoint in
// the wrong state.
func (w *World) Next(draw Draw) Command {
	g := generator{w, draw}
	if c, ok := g.needed(); ok {
		return c
	}
	i := draw("command", totalWeight)
	for _, k := range kinds {
		if i < k.weight {
			return k.make(&g)
		}
		i -= k.weight
	}
	panic("unreachable")
}

type generator struct {
	w    *World
	draw Draw
}

type kind struct {
	weight int
	make   func(*generator) Command
}

var (
	kinds       []kind
	totalWeight int
)

func init() {
	kinds = []kind{
		{2, func(g *generator) Command { return New("status", g.anyEP()) }},
		{14, func(g *generator) Command { return g.request("send") }},
		{16, (*generator).recv},
		{12, (*generator).dequeue},
		{6, func(g *generator) Command { return g.request("write") }},
		{6, func(g *generator) Command { return g.request("read") }},
		{4, (*generator).sharedRecv},
		{5, (*generator).connect},
		{4, (*generator).accept},
		{5, (*generator).disconnect},
		{4, func(g *generator) Command { return New("reset", g.resettable()) }},
		{4, (*generator).wait},
		{4, (*generator).modify},
		{6, (*generator).batch},
		{3, (*generator).shots},
		{3, (*generator).block},
		{1, (*generator).newRegionOf},
		{1, (*generator).dupConnect},
		{2, (*generator).srqControl},
		{1, (*generator).setWatermark},
		{1, func(*generator) Command { return New("async", "-") }},
		{2, func(g *generator) Command {
			return New([]string{"recv_query", "counters"}[g.draw("count", 2)], g.anyEP())
		}},
		{1, (*generator).sync},
		{3, func(g *generator) Command { return g.request("write_imm") }},
		{3, func(g *generator) Command { return g.request("send_inv") }},
		{2, func(g *generator) Command { return g.request("read_rmr") }},
		{2, func(g *generator) Command { return g.request("fetch_add") }},
		{2, func(g *generator) Command { return g.request("cmp_swap") }},
		{3, func(g *generator) Command { return New("post_se", g.evd(streamSoftware), "data", g.w.step) }},
		{1, (*generator).newSRQ},
		{1, func(g *generator) Command { return New("srq_free", g.any('q', len(g.w.srqs))) }},
		{1, func(g *generator) Command { return New("srq_query", g.any('q', len(g.w.srqs))) }},
		{1, (*generator).reject},
		{3, (*generator).newEP},
		{2, (*generator).newRegion},
		{2, (*generator).newEVD},
		{1, func(g *generator) Command { return New("pz", g.name('z', len(g.w.zones))) }},
		{1, func(g *generator) Command { return New("ep_free", g.anyEP()) }},
		{1, func(g *generator) Command { return New("lmr_free", g.freeable()) }},
		{1, func(g *generator) Command { return New("evd_free", g.freeableEVD()) }},
		{2, (*generator).freePoint},
		{2, (*generator).newPoint},
		{2, (*generator).reserve},
		{1, func(g *generator) Command { return New("sp_query", g.any('s', len(g.w.points)), "mask", g.bad()) }},
		{2, (*generator).handoff},
		{1, func(g *generator) Command { return New("pz_free", g.any('z', len(g.w.zones))) }},
		{1, func(g *generator) Command {
			return New("evd_resize", g.any('e', len(g.w.evds)), "qlen", g.of(0, 1, 2, 4, 16, 64, 65))
		}},
		{8, (*generator).notify},
		{2, (*generator).newWindow},
		{8, (*generator).bind},
		{1, func(g *generator) Command { return New("rmr_free", g.any('w', len(g.w.windows))) }},
		{1, func(g *generator) Command { return New("rmr_query", g.any('w', len(g.w.windows)), "mask", g.bad()) }},
		{6, func(g *generator) Command {
			return New("cno_wait", pickOne(g, 'n', g.w.cnos, func(n *cno) bool { return n.open && n.users > 0 }))
		}},
		{1, func(g *generator) Command { return New("cno_free", g.any('n', len(g.w.cnos))) }},
		{1, func(g *generator) Command { return New("lmr_query", g.any('m', len(g.w.regions)), "mask", g.bad()) }},
		{1, func(g *generator) Command { return New("evd_query", g.any('e', len(g.w.evds)), "mask", g.bad()) }},
		{1, func(g *generator) Command { return New("ep_query", g.anyEP(), "mask", g.bad()) }},
		{1, func(g *generator) Command { return New("cr_query", g.any('c', len(g.w.crs))) }},
	}
	for _, k := range kinds {
		totalWeight += k.weight
	}
}

// needed returns a command without which no program goes on or, most of the time,
// the next step towards a connection.
func (g *generator) needed() (c Command, ok bool) {
	w := g.w
	switch {
	case count(w.zones, func(z *zone) bool { return z.open }) == 0:
		return New("pz", g.name('z', len(w.zones))), true
	case count(w.regions, func(m *region) bool { return m.open }) == 0:
		return g.newRegion(), true
	case count(w.evds, func(d *evd) bool { return d.open && d.takes == allStreams && d.qlen >= 16 && d.class == 0 }) == 0:
		return g.plainEVD(), true
	case count(w.points, func(s *point) bool { return s.open && s.kind == "psp" }) == 0:
		return g.newPoint(), true
	case count(w.eps, func(p *endpoint) bool { return p.state != gone }) < 2:
		return g.newEP(), true
	}
	if count(w.points, reservedPoint) > 0 && count(w.eps, connectable) > 0 && g.draw("come", 3) == 2 {
		return g.connect(), true // the earlier its request comes, the longer the endpoint is seen in the state that follows
	}
	if count(w.eps, func(p *endpoint) bool { return p.state == isConnected }) >= 2 || g.draw("hurry", 3) == 0 {
		return c, false
	}
	switch {
	case count(w.crs, func(q *cr) bool { return q.seen && !q.dead && q.waits() && q.own == nil }) > 0:
		return g.accept(), true
	case count(w.crs, func(q *cr) bool { return !q.seen && q.waits() }) > 0:
		return g.dequeue(), true
	case count(w.eps, connectable) >= 2:
		return g.connect(), true
	}
	return c, false
}

func connectable(p *endpoint) bool { return p.state == unconnected && p.conn != nil }

// reservedPoint reports whether a point is an RSP whose endpoint still waits for a
// request.
func reservedPoint(s *point) bool { return s.open && !s.used && s.ep != nil }

func count[T any](all []*T, is func(*T) bool) (n int) {
	for _, o := range all {
		if o != nil && is(o) {
			n++
		}
	}
	return n
}

func (g *generator) name(kind byte, i int) string { return fmt.Sprintf("%c%d", kind, i) }

// rarely is true once in a dozen times, at most.
func (g *generator) rarely(label string) bool { return g.draw(label, 16) == 15 }

func (g *generator) of(choices ...int) int { return choices[g.draw("choice", len(choices))] }

func (g *generator) bad() string {
	if g.rarely("bad mask") {
		return "bad"
	}
	return ""
}

// any names an object of a kind, open or freed, and rarely none.
func (g *generator) any(kind byte, n int) string {
	if n == 0 || g.rarely("no object") {
		return "-"
	}
	return g.name(kind, n-1-g.draw("object", n))
}

// pickOne names an object that is right, if there is one, and rarely another.
func pickOne[T any](g *generator, kind byte, all []*T, right func(*T) bool) string {
	var good []int
	for i, o := range all {
		if o != nil && right(o) {
			good = append(good, i)
		}
	}
	if len(good) == 0 || g.rarely("wrong object") {
		return g.any(kind, len(all))
	}
	return g.name(kind, good[g.draw("object", len(good))])
}

// anyEP names an endpoint in any state, sometimes in one that is seldom reached.
func (g *generator) anyEP() string {
	if g.draw("seldom", 3) == 2 {
		return g.seldom()
	}
	return g.any('p', len(g.w.eps))
}

// seldom names an endpoint in one of the states that are seldom reached.
func (g *generator) seldom() string {
	return g.ep([]int{disconnectPending, activePending, reserved, passivePending, tentative}[g.draw("state", 5)])
}

func (g *generator) ep(states ...int) string {
	return pickOne(g, 'p', g.w.eps, func(p *endpoint) bool {
		for _, s := range states {
			if p.state == s {
				return true
			}
		}
		return false
	})
}

func (g *generator) evd(stream int) string {
	return pickOne(g, 'e', g.w.evds, func(d *evd) bool { return d.open && d.takes&stream != 0 && (d.feeds == 0 || d.class == 0) })
}

// evdOf names a dispatcher for completions of a class.
func (g *generator) evdOf(class int) string {
	return pickOne(g, 'e', g.w.evds, func(d *evd) bool {
		return d.open && d.takes&streamDTO != 0 && (d.feeds == 0 || d.class == class)
	})
}

func (g *generator) zone() string {
	return pickOne(g, 'z', g.w.zones, func(z *zone) bool { return z.open })
}

func (g *generator) newRegion() Command {
	priv := "LOCAL_READ|LOCAL_WRITE|REMOTE_READ|REMOTE_WRITE|REMOTE_ATOMIC"
	if g.draw("few privileges", 4) == 3 {
		names := strings.Split(priv, "|")
		i := g.draw("missing", len(names))
		priv = strings.Join(append(names[:i:i], names[i+1:]...), "|")
	}
	by := ""
	if g.rarely("alloc") {
		by = "alloc"
	}
	size := g.of(64, 128, 256, 8, 1)
	if g.rarely("empty") {
		size = 0
	}
	return New("lmr", g.name('m', len(g.w.regions)), "pz", g.zone(), "size", size, "priv", priv, "by", by)
}

// freeable names a region to which no window is being bound: if such a bind fails,
// DAT does not say whether the window stays bound.
func (g *generator) freeable() string {
	name := g.any('m', len(g.w.regions))
	for _, m := range g.w.windows {
		if m != nil && m.pending != nil && m.pending.seg.Region == Index('m', name) {
			return "-"
		}
	}
	return name
}

func (g *generator) newEP() Command {
	recv, req, conn := g.evd(streamDTO), g.evd(streamDTO), g.evd(streamConn)
	for _, name := range []*string{&recv, &req, &conn} {
		if g.rarely("no dispatcher") {
			*name = "-"
		}
	}
	recvFlags, reqFlags := "", ""
	flags := g.draw("completion flags", 10)
	if flags > 6 && count(g.w.evds, func(d *evd) bool { return d.open && (d.feeds == 0 || d.class != 0) }) == 0 {
		return g.plainEVD() // these classes share no dispatcher with others
	}
	switch flags {
	case 7:
		recvFlags, recv = "UNSIGNALLED", g.evdOf(unsignalled)
	case 8:
		recvFlags, recv = "SOLICITED", g.evdOf(solicited)
	case 9:
		recvFlags, recv = "UNSIGNALLED", g.evdOf(unsignalled)
		reqFlags, req = "UNSIGNALLED", g.evdOf(unsignalled)
	}
	args := []any{
		"pz", g.zone(), "recv", recv, "req", req, "conn", conn,
		"recvs", g.of(0, 16, 8, 4, 3, 2, 1, -1), "reqs", g.of(0, 16, 8, 4, 3, 2, 1, -1),
		"recviov", g.of(0, 4, 2, 1), "reqiov", g.of(0, 4, 2, 1),
		"maxmsg", g.of(0, 0, 256, 64), "maxrdma", g.of(0, 0, 256, 64),
	}
	args = append(args, "recvflags", recvFlags, "reqflags", reqFlags)
	if len(g.w.srqs) > 0 && g.draw("shared", 2) == 1 {
		args = append(args, "srq", pickOne(g, 'q', g.w.srqs, func(q *srq) bool { return q.open }))
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
	return New("ep", g.name('p', len(g.w.eps)), args...)
}

// private draws the length of the private data of a call.
func (g *generator) private() int {
	if g.rarely("much private data") {
		return g.w.limits.Private + g.draw("more", 2)
	}
	return g.of(0, 1, 5, 64)
}

func (g *generator) connect() Command {
	who := g.ep(unconnected)
	if g.rarely("connect again") {
		who = g.anyEP()
	}
	addr, timeout := "", ""
	if g.rarely("nowhere") {
		addr = "nowhere"
	}
	if g.rarely("negative") {
		timeout = "negative"
	}
	to := pickOne(g, 's', g.w.points, func(s *point) bool { return s.open && s.kind == "psp" })
	if count(g.w.points, reservedPoint) > 0 && g.draw("to one that is reserved", 4) != 0 {
		to = pickOne(g, 's', g.w.points, reservedPoint)
	}
	op := "connect"
	if g.draw("common", 4) == 3 {
		op = "common_connect"
		if g.rarely("malformed") {
			addr = "malformed"
		}
	}
	return New(op, who, "to", to, "private", g.private(), "addr", addr, "timeout", timeout)
}

func (g *generator) resettable() string {
	if g.draw("reset another", 8) == 7 {
		return g.anyEP()
	}
	return g.ep(isDisconnected)
}

func (g *generator) openCR() string {
	return pickOne(g, 'c', g.w.crs, func(q *cr) bool { return q.seen && !q.dead })
}

func (g *generator) accept() Command {
	name := g.openCR()
	q := g.w.cr(name)
	if q != nil && q.own != nil && g.draw("another endpoint", 8) != 7 {
		if p := q.own; p.zone == nil || p.conn == nil {
			return g.modifyEP(p.name)
		}
		return New("accept", name, "ep", []string{"-", q.own.name}[g.draw("named", 2)], "private", g.private())
	}
	return New("accept", name, "ep", g.ep(unconnected), "private", g.private())
}

func (g *generator) reject() Command { return New("reject", g.openCR(), "private", g.private()) }

func (g *generator) disconnect() Command {
	busy := func(p *endpoint) bool { return p.state == isConnected && len(p.reqs) > 0 }
	if count(g.w.eps, busy) > 0 && g.draw("drain", 2) == 1 {
		return New("disconnect", pickOne(g, 'p', g.w.eps, busy), "how", "graceful")
	}
	how := ""
	switch g.draw("how", 16) {
	case 8, 9, 10, 11, 12, 13, 14:
		how = "graceful"
	case 15:
		how = "bad"
	}
	if g.rarely("disconnect what is not connected") {
		return New("disconnect", g.anyEP(), "how", how)
	}
	return New("disconnect", g.ep(isConnected, disconnectPending, activePending), "how", how)
}
