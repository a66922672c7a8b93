package model

import "slices"

// params are the parameters of an endpoint, from DAT_EP_PARAM. With a shared queue,
// the depth and the segments of receives are the queue's.
type params struct {
	zone                *zone
	recv, req, conn     *evd
	srq                 *srq // where its receives come from, if not its own
	recvDepth, reqDepth int
	recvIOV, reqIOV     int
	readIOV, writeIOV   int
	maxMessage, maxRDMA int
	readsIn, readsOut   int
	recvFlags, reqFlags int
	waits               bool // a send without a receive waits, longer than the program lasts
}

// tooMany is more than any device allows.
const tooMany = 1 << 24

// asked returns the parameters with the objects and flags that a command names.
func (p params) asked(w *World, c Command) params {
	p.zone = given(c, "pz", &w.memory.zones, p.zone)
	p.recv, p.req, p.conn = given(c, "recv", &w.evds, p.recv), given(c, "req", &w.evds, p.req), given(c, "conn", &w.evds, p.conn)
	for key, flags := range map[string]*int{"recvflags": &p.recvFlags, "reqflags": &p.reqFlags} {
		if c.Has(key) {
			*flags = c.Bits(key, Flags)
		}
	}
	if c.Has("rnr") {
		p.waits = c.Text("rnr") != "fail"
	}
	return p
}

// given returns the object that an argument names or, without the argument, before.
func given[T object](c Command, key string, all *objects[T], before T) T {
	if c.Has(key) {
		return all.named(c.Text(key))
	}
	return before
}

// refuseParams adds what parameters are refused for, whatever they were before.
func (p *params) refuseParams(c *call) {
	for _, f := range p.feeds() {
		need(c, f.to)
		c.refuse(f.to.takes&f.stream == 0, invalidParameter)
	}
	c.refuse(p.recvFlags&(suppress|fence) != 0 || p.reqFlags&(suppress|fence|solicited) != 0, invalidParameter)
	if q := p.srq; q != nil {
		c.refuse(q.zone != p.zone, protectionViolation)
		if !slices.Contains(q.sinks(), p.recv) {
			p.recv.refuse(c, len(q.recvs))
		}
	}
}

// feed is one of the streams of events that an endpoint sends to a dispatcher.
type feed struct {
	to     *evd
	stream int
	class  int
}

// classOf returns the class of a feed. All feeds of one dispatcher must be of one
// class.
func classOf(flags int) int { return flags & (unsignalled | solicited) }

// feeds returns the dispatchers that get the endpoint's events.
func (p *params) feeds() []feed {
	all := []feed{{p.recv, streamDTO, classOf(p.recvFlags)}, {p.req, streamDTO, classOf(p.reqFlags)}, {p.conn, streamConn, 0}}
	return slices.DeleteFunc(all, func(f feed) bool { return f.to == nil })
}

// feedable reports whether the feeds and more have one class at each dispatcher, also
// with its other feeds. The parameters of the endpoint but do not count.
func (p *params) feedable(but *endpoint, more ...feed) bool {
	all := append(p.feeds(), more...)
	for i, f := range all {
		if !f.to.fits(f.class, but) || slices.ContainsFunc(all[:i], func(o feed) bool { return o.to == f.to && o.class != f.class }) {
			return false
		}
	}
	return true
}

// attr returns the attributes that are numbers, by name. With a shared queue, those
// of receives are the queue's and are left out.
func (p *params) attr() map[string]*int {
	all := map[string]*int{
		"recvs": &p.recvDepth, "reqs": &p.reqDepth, "recviov": &p.recvIOV, "reqiov": &p.reqIOV, "readiov": &p.readIOV, "writeiov": &p.writeIOV,
		"maxmsg": &p.maxMessage, "maxrdma": &p.maxRDMA, "readsin": &p.readsIn, "readsout": &p.readsOut,
	}
	if p.srq != nil {
		delete(all, "recvs")
		delete(all, "recviov")
	}
	return all
}

// setAttr takes the attributes that an endpoint has got. Each must be at least as
// large as asked for. In a new endpoint, a default must be at least 1, but those of
// reads may be 0. A modify must not change an attribute that it does not name, nor
// shrink depths and numbers of segments.
func (p *params) setAttr(c *call, values map[string]int, modified bool) {
	for name, at := range p.attr() {
		got, was, asked, least := values[name], *at, c.Int(name), 0
		switch name {
		case "readsin", "readsout":
		case "recvs", "reqs", "recviov", "reqiov":
			least = was
			fallthrough
		default:
			least = max(least, number(!modified && asked >= 0))
		}
		if *at = got; got < max(least, asked) {
			c.failf("%s is %d, less than %d", name, got, max(least, asked))
		}
		if modified && !c.Has(name) && got != was && name != "reqiov" { // reqiov is at least the larger of those of reads and writes
			c.failf("%s is %d, was %d", name, got, was)
		}
	}
}

// modify judges a modify of an endpoint, which changes all parameters that the
// command names, or none.
//
//	modify p0 pz=z1 recv=e2 conn=- recvs=32 recvflags=UNSIGNALLED rnr=fail
func (p *endpoint) modify(c *call) {
	q := p.asked(p.w, c.Command)
	p.refuseModify(c, &q)
	if !c.succeeded() {
		return
	}
	p.owed = append(p.owed, p.outliving(&q)...)
	p.params = q
	p.setAttr(c, c.Values, true)
}

// modifiable are the states in which an endpoint may be modified. Its zone and its
// receiver-not-ready attribute may not be modified in all of them.
var modifiable = []int{unconnected, reserved, passivePending, tentative}

// refuseModify adds what a modify that makes the parameters q is refused for.
func (p *endpoint) refuseModify(c *call, q *params) {
	c.refuse(c.Has("field"), invalidParameter) // one that can't be modified
	if len(c.Args) > 0 {
		c.refuseUnless(p, modifiable...)
	}
	if c.Has("pz") {
		c.refuseUnless(p, unconnected, tentative)
		need(c, q.zone)
	}
	if c.Has("rnr") {
		c.refuseUnless(p, unconnected)
	}
	q.refuseParams(c)
	c.refuse(!q.feedable(p, p.outliving(q)...), invalidState)
	c.refuse(q.recvFlags != p.recvFlags && len(p.recvs) > 0, stateCodes[p.state])
	for _, a := range []string{"recvs", "reqs", "recviov"} {
		c.refuse(c.Int(a) == tooMany && (p.srq == nil || a == "reqs"), invalidParameter)
		c.mayRefuse(c.Int(a) == tooMany, invalidParameter)
	}
	windows := p.w.memory.windows.count(func(m *window) bool { return m.ep == p }) > 0
	c.refuse(windows && q.zone != p.zone, invalidState)
	c.mayRefuse(windows, invalidState) // the device decides whether the endpoint can grow
}

// outliving returns the feed of the posted receives, if the modify takes their
// dispatcher from the endpoint.
func (p *endpoint) outliving(after *params) []feed {
	if p.recv == nil || p.recv == after.recv || len(p.recvs) == 0 {
		return nil
	}
	return []feed{{p.recv, streamDTO, classOf(p.recvFlags)}}
}
