package ep

import (
	"sync"
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Endpoint is one end of a connection: DAT_EP_HANDLE.
type Endpoint struct {
	// Immutable after it was made.
	adapter      *Adapter
	key          uint32
	context      any
	bell         chan struct{}
	alarms       chan alarm
	quit, served chan struct{}

	marks watermarks
	fired atomic.Uint32 // generation of the alarm that went off

	box mailbox

	// Owned by the token's holder.
	serving  bool // the goroutine is there
	broke    bool // Break was called in this life
	ending   bool // both queues have ended, and the end is not announced
	alarmGen uint32
	connRoom int // event room reserved for this connection
	outcome  outcome
	private  []byte // of the outcome

	// Written by the holder, under addrMu, and read by it and under addrMu.
	addrMu        sync.Mutex
	conn          *evd.Dispatcher
	attr          Attr
	local, remote address
	target        target

	// Written by a fact before it is told, read by the step.
	info    hw.ConnInfo
	refusal refusal
	why     hw.Reason
	asked   *CR // the same, of a reserved service point

	agreed atomic.Uint64 // see Reads
	// cause is why the connection ends, as soon as it is known. The completions that
	// are flushed read it.
	cause atomic.Pointer[hw.Cause]

	counted counted

	// Control calls, one at a time.
	ctl     sync.Mutex
	pending *control      // under ctl; read by the step
	over    chan struct{} // closed when both queues have ended; replaced by Reset
	freed   bool          // under ctl
	owed    []owed        // under ctl
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
		bell:    make(chan struct{}, 1),
		alarms:  make(chan alarm, 1),
		over:    make(chan struct{}),
	}
	e.box.e = e
	if cfg.PZ == nil {
		e.box.state.Store(uint32(TentativeConnectionPending))
	}
	e.box.requests.init(e, attr.MaxRequestDTOs, attr.MaxRequestIOV)
	e.box.requests.admits, e.box.requests.plain, e.box.requests.need = requestStates, hw.OpSend, operations[hw.OpSend].local
	e.box.requests.tailShift, e.box.requests.endInput = requestShift, tellRequestEnd
	e.box.recvs.init(e, attr.MaxRecvDTOs, attr.MaxRecvIOV)
	e.box.recvs.admits, e.box.recvs.plain, e.box.recvs.need = recvStates, hw.OpRecv, operations[hw.OpRecv].local
	e.box.recvs.tailShift, e.box.recvs.endInput = recvShift, tellRecvEnd
	e.box.recvs.prompt = !a.attr.NotReadyWait
	if e.box.recvs.srq = cfg.SRQ; cfg.SRQ != nil {
		e.box.recvs.admits = 0
	}
	e.marks.init(e, attr.SoftHighWatermark)
	e.setParts(&parts{pz: cfg.PZ, recv: cfg.Recv, request: cfg.Request, conn: cfg.Conn, attr: attr})
	if err := e.build(op); err != nil {
		return nil, err
	}
	return e, nil
}

// zone is the endpoint's protection zone; nil until an endpoint that a service
// point made has one.
func (b *mailbox) zone() *mem.PZ { return b.requests.rules.Load().pz }

// setParts makes the endpoint one of p, but for what p has of others.
func (e *Endpoint) setParts(p *parts) {
	attr := &p.attr
	e.addrMu.Lock()
	e.attr, e.conn = *attr, p.conn
	e.addrMu.Unlock()
	e.box.setRules(p)
	e.box.solicitedWait = attr.RecvFlags&hw.SolicitedWait != 0
	e.box.signalEvery = max(1, min(16, attr.MaxRequestDTOs/2))
	e.box.sendWRs = make([]hw.SendWR, min(scratchWRs, max(attr.MaxRequestDTOs, 1)))
	e.box.recvWRs = make([]hw.RecvWR, min(scratchWRs, max(attr.MaxRecvDTOs, 1)))
}

// build takes what the endpoint needs of others, and gives all of it back if
// anything fails.
func (e *Endpoint) build(op string) (err error) {
	if e.key, err = e.adapter.key(e); err != nil {
		return wrap(op, err)
	}
	e.box.requests.id, e.box.requests.endID = idBase(kindRequest, e.key), idBase(kindRequestEnd, e.key)
	e.box.recvs.id, e.box.recvs.endID = idBase(kindRecv, e.key), idBase(kindRecvEnd, e.key)
	p := e.parts()
	if _, err = e.acquire(&parts{}, &p); err != nil {
		e.adapter.endpoints.Remove(e.key)
		return wrap(op, err)
	}
	e.box.device, e.box.recvs.feed = p.device, p.feed
	e.adapter.add(e)
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
