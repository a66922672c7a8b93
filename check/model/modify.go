package model

import (
	"fmt"
	"slices"
)

// modify judges a modify of an endpoint, which changes all fields that the command
// names, or none.
//
//	modify p0 pz=z1 recv=e2 conn=- recvs=32 recvflags=UNSIGNALLED rnr=fail
func (w *World) modify(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	if p == nil {
		_, err := v.judge(r.Code)
		return err
	}
	q := *p // the endpoint after the modify
	q.zone = given(c, "pz", w.zone, p.zone)
	q.recv, q.request, q.conn = given(c, "recv", w.evd, p.recv), given(c, "req", w.evd, p.request), given(c, "conn", w.evd, p.conn)
	if c.Has("recvflags") {
		q.recvFlags = c.Bits("recvflags", Flags)
	}
	if c.Has("reqflags") {
		q.reqFlags = c.Bits("reqflags", Flags)
	}
	if c.Has("rnr") {
		q.waits = c.Text("rnr") != "fail"
	}
	w.refuseModify(&v, c, p, &q)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if p.zone != q.zone {
		if p.zone != nil {
			p.zone.uses--
		}
		q.zone.uses++
	}
	if p.outlives(&q) && !slices.Contains(p.owed, p.recv) {
		q.owed = append(q.owed, p.recv)
		p.recv.feeds++
	}
	for _, d := range p.feeds() {
		d.to.feeds--
	}
	for _, d := range q.feeds() {
		d.to.feeds++
		d.to.class = d.class
	}
	if s := p.srq; s != nil && p.recv != q.recv {
		before := w.sinks(s)
		p.recv = q.recv
		w.changeSinks(s, before, w.sinks(s))
	}
	*p = q
	return p.changeAttr(c, r)
}

// given returns the object that an argument names or, without the argument, before.
func given[T any](c Command, key string, find func(string) *T, before *T) *T {
	if c.Has(key) {
		return find(c.Text(key))
	}
	return before
}

// modifiable are the states in which an endpoint may be modified. Its zone and its
// receiver-not-ready attribute may not be modified in all of them.
var modifiable = []int{unconnected, reserved, passivePending, tentative}

func (w *World) refuseModify(v *verdict, c Command, p, q *endpoint) {
	v.when(c.Text("mask") == "bad", invalidParameter)
	allowed := slices.Contains(modifiable, p.state)
	if c.Has("pz") {
		allowed = allowed && (p.state == unconnected || p.state == tentative)
		v.when(q.zone == nil || !q.zone.open, invalidHandle)
		v.when(q.srq != nil && q.zone != q.srq.zone, protectionViolation)
	}
	if c.Has("rnr") {
		allowed = allowed && p.state == unconnected
	}
	v.when(!allowed && len(c.Args) > 0, stateCodes[p.state])
	for _, d := range q.feeds() {
		v.when(!d.to.open, invalidHandle)
		v.when(d.to.takes&d.stream == 0, invalidParameter)
	}
	v.when(!q.feedableAfter(p), invalidState)
	v.when(q.recvFlags != p.recvFlags && len(p.recvs) > 0, stateCodes[p.state])
	v.when(q.recvFlags&(suppress|fence) != 0 || q.reqFlags&(suppress|fence|solicited) != 0, invalidParameter)
	for _, a := range []string{"recvs", "reqs", "recviov"} {
		v.when(c.Int(a) == tooMany && (p.srq == nil || a == "reqs"), invalidParameter)
		v.perhaps(c.Int(a) == tooMany, invalidParameter)
	}
	windows := count(w.windows, func(m *window) bool { return m.open && m.ep == p }) > 0
	v.when(windows && q.zone != p.zone, invalidState)
	v.perhaps(windows, invalidState) // the device decides whether the endpoint can grow
	if s := p.srq; s != nil && q.recv != p.recv && q.recv != nil && !slices.Contains(w.sinks(s), q.recv) {
		w.room(v, q.recv, len(s.recvs))
	}
}

// outlives reports whether receives are posted for a dispatcher that the modify
// takes from the endpoint.
func (p *endpoint) outlives(after *endpoint) bool {
	return p.recv != nil && p.recv != after.recv && len(p.recvs) > 0
}

// feedableAfter is feedable as if the feeds of before were removed, except the feed
// of the receives that are posted.
func (p *endpoint) feedableAfter(before *endpoint) bool {
	for _, f := range before.feeds() {
		f.to.feeds--
	}
	if before.outlives(p) {
		before.recv.feeds++
	}
	ok := p.feedable()
	if before.outlives(p) {
		before.recv.feeds--
	}
	for _, f := range before.feeds() {
		f.to.feeds++
	}
	return ok
}

// changeSinks moves the reserved room of a shared queue's receives to its new
// sinks.
func (w *World) changeSinks(s *srq, before, after []*evd) {
	for _, d := range before {
		if !slices.Contains(after, d) {
			d.awaited -= len(s.recvs)
		}
	}
	for _, d := range after {
		if !slices.Contains(before, d) {
			d.awaited += len(s.recvs)
		}
	}
}

// changeAttr takes the attributes that the endpoint has got. An attribute that the
// command names must be at least as large as asked for, and one that it does not
// name must not change; depths and numbers of segments must not shrink.
func (p *endpoint) changeAttr(c Command, r Result) error {
	for name, at := range p.attr() {
		got, was, least := r.Values[name], *at, max(c.Int(name), 0)
		switch name {
		case "recvs", "reqs", "recviov", "reqiov":
			least = max(least, was)
		}
		if got < least {
			return fmt.Errorf("%s is %d, less than %d", name, got, least)
		}
		if !c.Has(name) && got != was && name != "reqiov" { // reqiov is at least the larger of those of reads and writes
			return fmt.Errorf("%s is %d, was %d", name, got, was)
		}
		*at = got
	}
	return nil
}
