package model

import (
	"fmt"
	"slices"
)

// Endpoint states, from DAT_EP_STATE.
const (
	unconnected       = 0
	reserved          = 2
	passivePending    = 4
	activePending     = 6
	tentative         = 7
	isConnected       = 9
	disconnectPending = 10
	isDisconnected    = 11
	gone              = NoState
)

// NoState is the state of an endpoint that was freed or never made.
const NoState = -1

// StateNames are the names of the states that programs reach.
var StateNames = map[int]string{
	unconnected: "UNCONNECTED", reserved: "RESERVED", passivePending: "PASSIVE",
	activePending: "ACTIVE", tentative: "TENTATIVE", isConnected: "CONNECTED",
	disconnectPending: "DISCONNECT_PENDING", isDisconnected: "DISCONNECTED", gone: "freed",
}

// stateCodes are the codes of calls that an endpoint's state forbids: INVALID_STATE
// with the state's subtype.
var stateCodes = map[int]Code{
	unconnected: invalidState | 47, activePending: invalidState | 48, passivePending: invalidState | 49,
	tentative: invalidState | 50, isConnected: invalidState | 51,
	isDisconnected: invalidState | 52, reserved: invalidState | 53, disconnectPending: invalidState | 55, gone: invalidHandle,
}

// Flags are the completion flags by name.
var Flags = map[string]int{"SUPPRESS": 0x01, "SOLICITED": 0x02, "UNSIGNALLED": 0x04, "FENCE": 0x08}

const (
	suppress    = 0x01
	solicited   = 0x02
	unsignalled = 0x04
	fence       = 0x08
)

type endpoint struct {
	srq                 *srq // where its receives come from, if not its own
	stalled             int  // the step at which its first request began to wait for a receive; 0 if it does not
	name                string
	zone                *zone
	recv, request, conn *evd
	owed                []*evd // dispatchers that its posted receives still feed; see settle
	recvDepth, reqDepth int
	recvIOV, reqIOV     int
	readIOV, writeIOV   int
	maxMessage, maxRDMA int
	readsIn, readsOut   int
	recvFlags, reqFlags int
	waits               bool // a send without a receive waits, longer than the program lasts
	state               int
	peer                *endpoint
	asked               *cr // the request of its attempt to connect
	own                 *cr // the request that came for it, or for which it was made
	recvs, reqs         []*work
	suppressed          []*work // done, but their slots may not be free yet
	connRoom            int
	target              int  // the qualifier to which it has connected
	watched             bool // its soft watermark is armed
	soft                int

	connects, disconnects, requests, receives int // the values of its counters
}

// work is a posted operation.
type work struct {
	op            string
	to            *evd  // the dispatcher of its completion
	shot          *shot // the one-shot of its completion, if any
	cookie, flags int
	segs          []Segment
	remote        Segment
	sink          Segment // of a read into a window
	imm           int
	add, cmp      uint64
	bind          *binding // of a bind
}

func (w *World) ep(name string) *endpoint { return object(w.eps, 'p', name) }

// EPs returns how many endpoints were made.
func (w *World) EPs() int { return len(w.eps) }

// State returns the state of an endpoint; [NoState] when it is not there.
func (w *World) State(index int) int {
	if index < 0 || index >= len(w.eps) || w.eps[index] == nil {
		return gone
	}
	return w.eps[index].state
}

func (w *World) newEP(c Command, r Result) error {
	p := &endpoint{
		name: c.On, zone: w.zone(c.Text("pz")), state: gone,
		recv: w.evd(c.Text("recv")), request: w.evd(c.Text("req")), conn: w.evd(c.Text("conn")),
		recvFlags: c.Bits("recvflags", Flags), reqFlags: c.Bits("reqflags", Flags),
		waits: c.Text("rnr") != "fail", srq: w.srq(c.Text("srq")),
	}
	w.eps = append(w.eps, nil)
	var v verdict
	v.when(p.zone == nil || !p.zone.open, invalidHandle)
	for _, d := range p.feeds() {
		v.when(!d.to.open, invalidHandle)
		v.when(d.to.takes&d.stream == 0, invalidParameter)
	}
	v.when(!p.feedable(), invalidState)
	if q := p.srq; q != nil {
		v.when(!q.open, invalidHandle)
		v.when(q.zone != p.zone, protectionViolation)
		if p.recv != nil && !slices.Contains(w.sinks(q), p.recv) {
			w.room(&v, p.recv, len(q.recvs))
		}
	}
	v.when(p.recvFlags&(suppress|fence) != 0 || p.reqFlags&(suppress|fence|solicited) != 0, invalidParameter)
	v.when(c.Int("recvs") == tooMany || c.Int("reqs") == tooMany || c.Int("recviov") == tooMany, invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if q := p.srq; q != nil && p.recv != nil && !slices.Contains(w.sinks(q), p.recv) {
		p.recv.awaited += len(q.recvs)
	}
	w.eps[len(w.eps)-1] = p
	p.state = unconnected
	p.zone.uses++
	for _, d := range p.feeds() {
		d.to.feeds++
		d.to.class = d.class
	}
	return p.setAttr(c, r)
}

// tooMany is more than any device allows.
const tooMany = 1 << 24

// attr returns the attributes that are numbers, by name. With a shared queue, those
// of receives are the queue's and are left out.
func (p *endpoint) attr() map[string]*int {
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

// setAttr takes the attributes that the endpoint has got. Each must be at least as
// large as asked for; a default must be at least 1, but those of reads may be 0.
func (p *endpoint) setAttr(c Command, r Result) error {
	for name, to := range p.attr() {
		got, asked := r.Values[name], c.Int(name)
		least := max(asked, 1)
		if asked < 0 || asked == 0 && (name == "readsin" || name == "readsout") {
			least = 0
		}
		if got < least {
			return fmt.Errorf("%s is %d, less than %d", name, got, least)
		}
		*to = got
	}
	return nil
}

type feed struct {
	to     *evd
	stream int
	class  int
}

// feeds returns the dispatchers that get the endpoint's events.
func (p *endpoint) feeds() (all []feed) {
	for _, f := range []feed{
		{p.recv, streamDTO, classOf(p.recvFlags)},
		{p.request, streamDTO, classOf(p.reqFlags)},
		{p.conn, streamConn, 0},
	} {
		if f.to != nil {
			all = append(all, f)
		}
	}
	return all
}

// unsure counts suppressed requests that are done but may still hold a slot and a
// place for their event. They never hold more than half of the queue, so suppressed
// requests alone can't fill it.
func (p *endpoint) unsure() int { return min(len(p.suppressed), p.reqDepth/2) }

func (p *endpoint) usable() (v verdict) {
	v.when(p == nil || p.state == gone, invalidHandle)
	return v
}

func (w *World) status(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if len(p.suppressed) == 0 || len(p.reqs) > 0 {
		if err := r.check("request_idle", number(len(p.reqs) == 0)); err != nil {
			return err
		}
	}
	return r.check("state", p.state, "recv_idle", number(len(p.recvs) == 0))
}

// queryEP judges a query: the state, and which addresses are set.
func (w *World) queryEP(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	v.when(c.Text("mask") == "bad", invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if err := r.check("state", p.state, "pz", indexOf(w.zones, p.zone), "recv", indexOf(w.evds, p.recv),
		"req", indexOf(w.evds, p.request), "conn", indexOf(w.evds, p.conn)); err != nil {
		return err
	}
	for name, want := range p.attr() {
		if err := r.check(name, *want); err != nil {
			return err
		}
	}
	switch p.state {
	case isConnected, disconnectPending:
		return r.check("local", 1, "remote", 1)
	case passivePending, tentative, activePending:
		return r.check("remote", 1)
	}
	return r.check("remote", 0)
}

// reset judges a reset of a disconnected endpoint.
func (w *World) reset(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	if p != nil && p.state != unconnected && p.state != isDisconnected {
		v.when(true, stateCodes[p.state])
	}
	ok, err := v.judge(r.Code)
	if ok && p.state == isDisconnected {
		p.settle()
	}
	if ok {
		p.state = unconnected
	}
	return err
}

func (w *World) freeEP(c Command, r Result) error {
	p := w.ep(c.On)
	var v verdict
	v.when(p == nil, invalidHandle)
	if p != nil && (p.state == reserved || p.state == passivePending || p.state == tentative) {
		v.when(true, stateCodes[p.state])
	}
	ok, err := v.judge(r.Code)
	if !ok || p.state == gone {
		return err
	}
	peer := p.peer
	w.destroy(p)
	if peer != nil {
		w.end(peer, disconnected)
	}
	return nil
}

// destroy flushes everything that an endpoint has posted, and removes it.
func (w *World) destroy(p *endpoint) {
	w.flush(p)
	w.leave(p)
	p.state = gone
	if q := p.srq; q != nil && p.recv != nil && !slices.Contains(w.sinks(q), p.recv) {
		p.recv.awaited -= len(q.recvs)
	}
	if p.zone != nil {
		p.zone.uses--
	}
	for _, d := range p.feeds() {
		d.to.feeds--
	}
	p.settle()
}

// settle removes the feeds of posted receives at dispatchers that a modify has
// taken from the endpoint since.
func (p *endpoint) settle() {
	for _, d := range p.owed {
		d.feeds--
	}
	p.owed = nil
}
