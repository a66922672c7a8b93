package ep

import (
	"cmp"
	"time"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// Endpoint is one end of a connection: DAT_EP_HANDLE. Its methods may be called
// from any goroutine. Close frees it.
//
// [godat/runtime.IA.NewEndpoint] makes one, UNCONNECTED. Connect and [CR.Accept] begin a connection,
// whose outcome is an event. Posts return at once, and each request that they take ends in
// exactly one completion. Its zone, dispatchers and shared receive queue can't be closed before
// it. A [godat/runtime.Conn] is an endpoint whose memory, receives and events are arranged already.
type Endpoint struct {
	// Posters and the token's holder share the mailbox. Its address is the endpoint's, so a
	// post needs no second pointer.
	box line.Mailbox

	// Immutable once the endpoint is made.
	adapter   *Adapter
	key       uint32
	number    uint64 // see describe.go
	context   any
	srq       *SRQ // receives come from it; or nil
	endIsLast bool // see Config.EndIsLast
	record    *record

	machine machine // owned by the token's holder

	// The other parts; each says who may touch it.
	facts   facts
	profile profile
	cause   endCause
	marks   watermarks
	windows memory.Owner // the windows that only this endpoint binds
	ctl     controls
}

// Config says what an endpoint is made of.
type Config struct {
	// PZ is the zone of the endpoint's memory.
	PZ *mem.PZ
	// Recv, Request and Conn take completions of receives, completions of requests,
	// and connection events. They may be the same dispatcher. If one of the first
	// two is nil, completions of that direction are dropped; an endpoint without
	// Conn can't connect.
	Recv, Request, Conn *evd.Dispatcher
	// Attr are the attributes; nil means all defaults, which is not allowed with
	// an SRQ.
	Attr *Attr
	// SRQ, if set, is the shared queue that receives come from. It must be of the
	// same zone. MaxRecvDTOs and MaxRecvIOV of the attributes then have no effect,
	// and posting a receive to the endpoint is INVALID_STATE/SRQ_IN_USE.
	SRQ *SRQ
	// EndIsLast makes the event of a connection's end the last one that the endpoint
	// has: what is posted from then on is INVALID_STATE/EP_DISCONNECTED, until Reset, and
	// the flushes of what was posted before come before the end. Without it a post in
	// DISCONNECTED is accepted and flushed at once, as DAT says.
	EndIsLast bool
	// Context belongs to the program: [Endpoint.Context] returns it, without the
	// table that DAT's consumer contexts need.
	Context any
}

// NewEndpoint makes an endpoint in state UNCONNECTED.
// It answers to dat_ep_create, and with an SRQ to dat_ep_create_with_srq.
func (a *Adapter) NewEndpoint(cfg Config) (*Endpoint, error) {
	const op = "ep.NewEndpoint"
	if a == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleIA}
	}
	if cfg.PZ == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "an endpoint needs a protection zone: IA.NewPZ makes one, for EndpointConfig.PZ"}
	}
	if err := cmp.Or(a.ownPZ(op, cfg.PZ), cfg.checkSRQ(op, a)); err != nil {
		return nil, err
	}
	attr, err := cfg.Attr.resolve(op, a.attr)
	if err != nil {
		return nil, err
	}
	if cfg.SRQ != nil {
		attr.MaxRecvDTOs, attr.MaxRecvIOV = 0, 0
	}
	return a.make(op, cfg, attr)
}

// make makes an endpoint: UNCONNECTED if cfg has a zone, else TENTATIVE_CONNECTION_PENDING.
func (a *Adapter) make(op string, cfg Config, attr Attr) (*Endpoint, error) {
	e := &Endpoint{
		adapter: a, number: endpoints.Add(1),
		context: cfg.Context, srq: cfg.SRQ, endIsLast: cfg.EndIsLast, record: &record{made: time.Now()},
	}
	e.facts.e, e.profile.box = e, &e.box
	e.box.Init(&e.record.Cold, line.Config{
		Source: e, Owner: (*home)(e), Crew: &a.crew, Prompt: !a.attr.NotReadyWait || a.attr.Strict,
		RequestDepth: attr.MaxRequestDTOs, RequestIOV: attr.MaxRequestIOV,
		RecvDepth: attr.MaxRecvDTOs, RecvIOV: attr.MaxRecvIOV,
	})
	e.machine.init(e)
	e.ctl.init(e)
	if cfg.PZ == nil {
		e.box.SetState(TentativeConnectionPending.inBox())
	}
	e.marks.setSoft(e, attr.SoftHighWatermark)
	e.marks.hard.Store(NoWatermark)
	fitting{e}.set(&parts{pz: cfg.PZ, recv: cfg.Recv, request: cfg.Request, conn: cfg.Conn, attr: attr})
	if err := a.furnish(op, e); err != nil {
		return nil, err
	}
	return e, nil
}

// furnish takes what the endpoint needs of other objects: all of it, or after an error nothing.
func (a *Adapter) furnish(op string, e *Endpoint) (err error) {
	if e.key, _, err = a.endpoints.Insert(func(uint32) *Endpoint { return e }); err != nil {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEP, "%w", err)
	}
	e.box.SetIDs(line.IDs{
		Request: idBase(kindRequest, e.key), RequestEnd: idBase(kindRequestEnd, e.key),
		Recv: idBase(kindRecv, e.key), RecvEnd: idBase(kindRecvEnd, e.key), Mark: idBase(kindMark, e.key),
	})
	p := e.ctl.parts()
	if _, err = p.acquire(e, &parts{}); err != nil {
		a.endpoints.Remove(e.key)
		return wrap(op, err)
	}
	e.box.SetQP(p.qp)
	fitting{e}.equip(&p)
	a.eps.put(e, e)
	a.counters.endpoints.whole.Add(1)
	a.latency.tell(e)
	return nil
}

// Of returns the endpoint that an event is about, or nil.
func Of(ev event.Event) *Endpoint {
	e, _ := ev.Source.(*Endpoint)
	return e
}

// Context returns the [Config.Context] that the endpoint was made with; nil for a
// nil endpoint.
func (e *Endpoint) Context() any {
	if e == nil {
		return nil
	}
	return e.context
}

// State returns the endpoint's state now. Another goroutine may change it at once.
// A nil endpoint has the state of a closed one.
func (e *Endpoint) State() State {
	if e == nil {
		return closed
	}
	return stateIn(&e.box)
}

// wiring returns the internal dispatcher behind d; nil for a nil d.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }

// wrap returns err with the name of the call that the program made.
func wrap(op string, err error) error { return line.Wrap(op, err) }
