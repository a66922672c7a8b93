package ep

import (
	"math"
	"sync"
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/internal/owner"
	"godat/mem"
)

// Endpoint is one end of a connection: DAT_EP_HANDLE.
type Endpoint struct {
	// Immutable after NewEndpoint.
	adapter       *Adapter
	pz            *mem.PZ
	conn          *evd.Dispatcher
	attr          Attr
	key           uint32
	qp            hw.QP
	sendCQ        hw.CQ // on a polled device
	recvCQ        hw.CQ
	recvRoom      int                     // receives that recvCQ has room for
	illegal       [len(operations)]uint32 // see illegalFlags
	solicitedWait bool                    // receives notify only when solicited
	signalEvery   int                     // suppressed requests between two signaled ones
	bell          chan struct{}
	alarms        chan alarm
	quit, served  chan struct{}

	// Shared; see token.go.
	_         [64]byte
	word      atomic.Uint64
	state     atomic.Uint32 // State, written by become alone
	inputs    atomic.Uint32 // what the step has been told; tell*
	inherited atomic.Bool   // the token was left to the goroutine
	fired     atomic.Uint32 // generation of the alarm that went off
	_         [40]byte

	requests, recvs queue

	// Owned by the token's holder.
	own        owner.Tag
	sendWRs    []hw.SendWR // scratch of one call to the provider
	recvWRs    []hw.RecvWR
	unsignaled int
	serving    bool // the goroutine is there
	broke      bool // Break was called in this life
	ending     bool // both queues have ended, and the end is not announced
	called     bool // a control call waits for what was posted before it
	alarmGen   uint32
	connRoom   int // event room reserved for this connection
	outcome    outcome
	private    []byte // of the outcome

	// Written by the holder.
	addrMu        sync.Mutex
	local, remote address
	target        target

	// Written by a fact before it is told, read by the step.
	info    hw.ConnInfo
	refusal refusal
	why     hw.Reason
	asked   *CR // the same, of a reserved service point

	// Control calls, one at a time.
	ctl     sync.Mutex
	pending *control      // under ctl; read by the step
	over    chan struct{} // closed when both queues have ended; replaced by Reset
	freed   bool          // under ctl
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
	e := &Endpoint{
		adapter: a, pz: cfg.PZ, conn: cfg.Conn, attr: attr,
		solicitedWait: attr.RecvFlags&hw.SolicitedWait != 0,
		illegal:       illegalFlags(postable(a.attr.Ops), &attr),
		signalEvery:   max(1, min(16, attr.MaxRequestDTOs/2)),
		bell:          make(chan struct{}, 1),
		alarms:        make(chan alarm, 1),
		over:          make(chan struct{}),
		sendWRs:       make([]hw.SendWR, min(scratchWRs, max(attr.MaxRequestDTOs, 1))),
		recvWRs:       make([]hw.RecvWR, min(scratchWRs, max(attr.MaxRecvDTOs, 1))),
	}
	e.requests.init(e, cfg.Request, attr.MaxRequestDTOs, attr.MaxRequestIOV)
	e.requests.admits, e.recvs.admits = requestStates, recvStates
	e.requests.tailShift, e.requests.endInput = requestShift, tellRequestEnd
	e.recvs.init(e, cfg.Recv, attr.MaxRecvDTOs, attr.MaxRecvIOV)
	e.recvs.tailShift, e.recvs.endInput = recvShift, tellRecvEnd
	if e.recvs.srq = cfg.SRQ; cfg.SRQ != nil {
		e.recvs.admits = 0
	}
	e.requests.setPlain(hw.OpSend, attr.MaxMessageSize)
	e.recvs.setPlain(hw.OpRecv, math.MaxUint32)
	if err := e.build(op); err != nil {
		return nil, err
	}
	return e, nil
}

// build takes what the endpoint needs of others, and gives all of it back if
// anything fails.
func (e *Endpoint) build(op string) (err error) {
	var undo []func()
	defer func() {
		for i := len(undo) - 1; err != nil && i >= 0; i-- {
			undo[i]()
		}
	}()
	if err = e.pz.Use(); err != nil {
		return err
	}
	undo = append(undo, e.pz.Unuse)
	for _, d := range e.dispatchers() {
		if err = d.attach(); err != nil {
			return err
		}
		undo = append(undo, d.detach)
	}
	if e.key, err = e.adapter.add(e); err != nil {
		return err
	}
	undo = append(undo, func() { e.adapter.remove(e) })
	e.requests.id, e.requests.endID = idBase(kindRequest, e.key), idBase(kindRequestEnd, e.key)
	e.recvs.id, e.recvs.endID = idBase(kindRecv, e.key), idBase(kindRecvEnd, e.key)
	e.recvRoom = e.attr.MaxRecvDTOs
	if srq := e.recvs.srq; srq != nil {
		if e.recvs.feed, e.recvRoom, err = srq.attach(e.recvs.evd); err != nil {
			return wrap(op, err)
		}
		undo = append(undo, func() { srq.detach(e.recvs.feed) })
	}
	if err = e.attachCQs(); err != nil {
		return err
	}
	undo = append(undo, e.detachCQs)
	e.qp, err = e.adapter.newQP(e)
	return wrap(op, err)
}

func (e *Endpoint) qpConfig() hw.QPConfig {
	cfg := hw.QPConfig{
		Zone: e.pz.Zone(), SendCQ: e.sendCQ, RecvCQ: e.recvCQ, Facts: (*facts)(e),
		SendDepth: e.attr.MaxRequestDTOs, RecvDepth: e.attr.MaxRecvDTOs,
		SendSegments: e.attr.MaxRequestIOV, RecvSegments: e.attr.MaxRecvIOV,
		ReadsIn: e.attr.MaxReadIn, ReadsOut: e.attr.MaxReadOut,
		NotReady: e.attr.ReceiverNotReady,
		SendEnd:  e.requests.endID, RecvEnd: e.recvs.endID, Number: e.key,
	}
	if e.recvs.srq != nil {
		cfg.SRQ = e.recvs.srq.hw
	}
	if e.adapter.cqs == nil {
		cfg.SendSink, cfg.RecvSink = &e.requests, &e.recvs
	}
	return cfg
}

// attachment is one use of a dispatcher: a direction's, with its completion flags,
// or that of connection events.
type attachment struct {
	to    *evd.Dispatcher
	conn  bool
	flags hw.Flags
}

func (a attachment) attach() error {
	if a.conn {
		return a.to.Attach(evd.StreamConnection)
	}
	return a.to.AttachDTO(a.flags)
}

func (a attachment) detach() {
	if a.conn {
		a.to.Detach()
	} else {
		a.to.DetachDTO(a.flags)
	}
}

// dispatchers are those that the endpoint feeds, one entry for each use.
func (e *Endpoint) dispatchers() (list []attachment) {
	for _, a := range [...]attachment{
		{to: e.recvs.evd, flags: e.attr.RecvFlags},
		{to: e.requests.evd, flags: e.attr.RequestFlags},
		{to: e.conn, conn: true},
	} {
		if a.to != nil {
			list = append(list, a)
		}
	}
	return list
}

// attachCQs finds completion queues on a polled device. Each direction needs two
// places more than its depth: its end, and a provider's own marker.
func (e *Endpoint) attachCQs() (err error) {
	cqs := e.adapter.cqs
	if cqs == nil {
		return nil
	}
	if e.sendCQ, err = cqs.Attach(e.requests.evd, e.attr.MaxRequestDTOs+2); err != nil {
		return err
	}
	if e.recvCQ, err = cqs.Attach(e.recvs.evd, e.recvRoom+2); err != nil {
		cqs.Detach(e.sendCQ, e.attr.MaxRequestDTOs+2)
	}
	return err
}

func (e *Endpoint) detachCQs() {
	if cqs := e.adapter.cqs; cqs != nil {
		cqs.Detach(e.sendCQ, e.attr.MaxRequestDTOs+2)
		cqs.Detach(e.recvCQ, e.recvRoom+2)
	}
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
