package model

import "slices"

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

type endpoint struct {
	params
	w          *World
	name       string
	state      int
	peer       *endpoint
	request    *cr // the request of its attempt to connect
	connRoom   int // places reserved for its connection events
	target     int // the qualifier to which it has connected
	recvs      []*work
	reqs       []*work
	suppressed []*work // done, but their slots may not be free yet
	stalled    int     // the step at which its first request began to wait for a receive; 0 if it does not
	owed       []feed  // of its posted receives, to dispatchers that a modify took from the endpoint since
	watched    bool    // its soft watermark is armed
	soft       int

	connects, disconnects, requests, receives int // the values of its counters
}

func (p *endpoint) usable() bool { return p.state != gone }

// in reports whether the endpoint is in one of the states.
func (p *endpoint) in(states ...int) bool { return slices.Contains(states, p.state) }

// State returns the state of an endpoint; [NoState] when it is not there.
func (w *World) State(index int) int {
	if p := w.eps.at(index); p != nil {
		return p.state
	}
	return gone
}

func (w *World) newEP(c *call) {
	p := &endpoint{w: w, name: c.On}
	p.params = params{srq: w.srqs.named(c.Text("srq")), waits: true}
	p.params = p.asked(w, c.Command)
	need(c, p.zone)
	if p.srq != nil {
		need(c, p.srq)
	}
	p.refuseParams(c)
	c.refuse(!p.feedable(nil), invalidState)
	c.refuse(slices.Contains([]int{c.Int("recvs"), c.Int("reqs"), c.Int("recviov")}, tooMany), invalidParameter)
	if w.eps.add(c, p) {
		p.setAttr(c, c.Values, false)
	}
}

func (p *endpoint) free(c *call) {
	if p.in(reserved, passivePending, tentative) {
		c.refuse(true, stateCodes[p.state])
	}
	if peer := p.peer; c.succeeded() && p.state != gone {
		p.destroy()
		if peer != nil {
			peer.end(disconnected, "")
		}
	}
}

// destroy flushes everything that an endpoint has posted, and removes it.
func (p *endpoint) destroy() {
	p.flush()
	p.detach()
	p.state = gone
}

// uncertain counts suppressed requests that are done but may still hold a slot and a
// place for their event. They never hold more than half of the queue, so suppressed
// requests alone can't fill it.
func (p *endpoint) uncertain() int { return min(len(p.suppressed), p.reqDepth/2) }

func (p *endpoint) status(c *call) {
	if len(p.suppressed) == 0 || len(p.reqs) > 0 {
		c.expect("request_idle", number(len(p.reqs) == 0))
	}
	c.expect("state", p.state, "recv_idle", number(len(p.recvs) == 0))
}

// query judges a query: the state, the parameters, and which addresses are set.
func (p *endpoint) query(c *call) {
	c.expect("state", p.state, "pz", p.w.memory.zones.index(p.zone), "recv", p.w.evds.index(p.recv),
		"req", p.w.evds.index(p.req), "conn", p.w.evds.index(p.conn))
	for name, want := range p.attr() {
		c.expect(name, *want)
	}
	c.expect("remote", number(p.in(isConnected, disconnectPending, passivePending, tentative, activePending)))
	c.expect("local", 1)
}

// reset judges a reset of a disconnected endpoint.
func (p *endpoint) reset(c *call) {
	c.refuseUnless(p, unconnected, isDisconnected)
	if !c.succeeded() {
		return
	}
	if p.state == isDisconnected {
		p.owed = nil
	}
	p.state = unconnected
}

// queryRecvs judges the count of the receives that an endpoint has. They are its
// own, since it completes each receive of a shared queue as it takes it.
func (p *endpoint) queryRecvs(c *call) {
	c.expect("allocated", len(p.recvs), "spread", 1)
}

func (p *endpoint) queryCounters(c *call) {
	c.expect("connects", p.connects, "disconnects", p.disconnects, "requests", p.requests, "receives", p.receives)
}

// setWatermark judges the bounds on the receives that an endpoint may have taken of
// its shared queue; -1 is no bound.
func (p *endpoint) setWatermark(c *call) {
	c.refuse(c.Int("soft") < -1 || c.Int("hard") < -1, invalidParameter)
	if c.succeeded() {
		p.watched, p.soft = true, c.Int("soft")
	}
}
