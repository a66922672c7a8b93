package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/memory"
	"godat/mem"
)

// Endpoint is one end of a connection: DAT_EP_HANDLE.
type Endpoint struct {
	// Posters and the token's holder share the mailbox. It comes first, so that its
	// address is the endpoint's, and a post needs no other.
	box mailbox

	// Immutable after it was made.
	adapter *Adapter
	key     uint32
	context any

	machine machine // the token holder's alone

	// The other parts; each says who may touch it.
	facts   facts
	worker  worker
	profile profile
	cause   endCause
	marks   watermarks
	counted counted
	windows memory.Owner // those that only this endpoint binds
	ctl     controls
}

// Config says what an endpoint is made of.
type Config struct {
	// PZ is the zone of its memory.
	PZ *mem.PZ
	// Recv, Request and Conn take completions of receives, completions of
	// requests, and connection events. They may be one and the same. A direction
	// whose dispatcher is nil loses its completions; Conn is needed to connect.
	Recv, Request, Conn *evd.Dispatcher
	// Attr are the attributes; nil means all defaults, which is not allowed with
	// an SRQ.
	Attr *Attr
	// SRQ, if set, is where receives come from. It is of the same zone. MaxRecvDTOs
	// and MaxRecvIOV of the attributes have no effect then, and posting a receive to
	// the endpoint is INVALID_STATE/SRQ_IN_USE.
	SRQ *SRQ
	// Context is the program's own: [Endpoint.Context] returns it, without the table
	// that DAT's consumer contexts need.
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
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "an endpoint needs a protection zone"}
	}
	if err := a.ownPZ(op, cfg.PZ); err != nil {
		return nil, err
	}
	if err := cfg.checkSRQ(op, a); err != nil {
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

// make makes an endpoint, UNCONNECTED if it has a zone.
func (a *Adapter) make(op string, cfg Config, attr Attr) (*Endpoint, error) {
	e := &Endpoint{
		adapter: a,
		context: cfg.Context,
	}
	e.box.e, e.facts.e, e.profile.e = e, e, e
	e.machine.init(e)
	e.worker.init(e)
	e.ctl.init(e)
	if cfg.PZ == nil {
		e.box.state.Store(uint32(TentativeConnectionPending))
	}
	e.box.requests.init(e, attr.MaxRequestDTOs, attr.MaxRequestIOV)
	e.box.requests.plain, e.box.requests.need = hw.OpSend, operations[hw.OpSend].local
	e.box.requests.tailShift, e.box.requests.endInput = requestShift, tellRequestEnd
	e.box.recvs.init(e, attr.MaxRecvDTOs, attr.MaxRecvIOV)
	e.box.recvs.plain, e.box.recvs.need = hw.OpRecv, operations[hw.OpRecv].local
	e.box.recvs.tailShift, e.box.recvs.endInput = recvShift, tellRecvEnd
	e.box.recvs.prompt = !a.attr.NotReadyWait
	e.box.recvs.srq = cfg.SRQ
	e.marks.init(e, attr.SoftHighWatermark)
	e.box.setParts(&parts{pz: cfg.PZ, recv: cfg.Recv, request: cfg.Request, conn: cfg.Conn, attr: attr})
	if err := a.furnish(op, e); err != nil {
		return nil, err
	}
	return e, nil
}

// pz is the endpoint's protection zone; nil until an endpoint that a service point
// made has one.
func (b *mailbox) pz() *mem.PZ { return b.requests.rules.Load().pz }

// furnish takes what the endpoint needs of others, and gives all of it back if
// anything fails.
func (a *Adapter) furnish(op string, e *Endpoint) (err error) {
	if e.key, err = a.key(e); err != nil {
		return wrap(op, err)
	}
	b := &e.box
	b.requests.id, b.requests.endID = idBase(kindRequest, e.key), idBase(kindRequestEnd, e.key)
	b.recvs.id, b.recvs.endID = idBase(kindRecv, e.key), idBase(kindRecvEnd, e.key)
	p := e.ctl.parts()
	if _, err = p.acquire(e, &parts{}); err != nil {
		a.endpoints.Remove(e.key)
		return wrap(op, err)
	}
	b.device, b.recvs.feed = p.device, p.feed
	a.add(e)
	return nil
}

// Of is the endpoint that an event is about, or nil.
func Of(ev evd.Event) *Endpoint {
	e, _ := ev.Source.(*Endpoint)
	return e
}

// wrap puts the name of the call that the program made on an error.
func wrap(op string, err error) error {
	if e, ok := err.(*hw.Error); ok {
		named := *e
		named.Op = op
		return &named
	}
	return err
}
