package ep

import (
	"fmt"
	"log/slog"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
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
	adapter   *endpointRegistry
	key       uint32
	number    uint64 // see numbers.go
	context   any
	srq       *SRQ // receives come from it; or nil
	endIsLast bool // see Config.EndIsLast
	record    *record

	// Owned by the token's holder, which runs the endpoint's machine.
	life  life.Life
	alarm *alarm // nil: none is set

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
func (e *Endpoint) State() State { return State(e.at()) }

// at is State.
func (e *Endpoint) at() life.State {
	if e == nil {
		return life.Closed
	}
	return stateIn(&e.box)
}

// isMade reports whether NewEndpoint, or a service point, has made the endpoint.
func (e *Endpoint) isMade() bool { return e != nil && e.adapter != nil }

func errNoEndpoint(op string) error {
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is nil or zero; NewEndpoint makes one"}
}

// alive refuses nil and closed endpoints.
func alive(op string, e *Endpoint) error {
	if !e.isMade() {
		return errNoEndpoint(op)
	}
	if s := e.at(); s == life.Closed {
		return s.Refusal(op)
	}
	return nil
}

// String names the endpoint, with its state. It may be called at any time, as the
// String of every handle.
func (e *Endpoint) String() string {
	if e == nil {
		return "Endpoint(nil)"
	}
	return fmt.Sprintf("Endpoint(%d, %v)", e.number, e.State())
}

// LogValue names the endpoint, its state and its addresses, for log/slog. It may be called at any
// time, as the LogValue of every handle.
func (e *Endpoint) LogValue() slog.Value {
	if e == nil {
		return slog.StringValue(e.String())
	}
	p := &e.profile
	p.mu.Lock()
	defer p.mu.Unlock()
	return slog.GroupValue(slog.String("name", e.name()), slog.String("state", e.State().String()),
		slog.String("local", p.local.String()), slog.String("remote", p.remote.String()))
}

// name is String without the state.
func (e *Endpoint) name() string { return fmt.Sprintf("Endpoint(%d)", e.number) }

// mailbox returns the endpoint's mailbox; nil for a nil endpoint.
func (e *Endpoint) mailbox() *line.Mailbox {
	if e == nil {
		return nil
	}
	return &e.box
}

// facts are what has come from outside, until the machine reads it. Each field is written before its input
// is told, and read after the input.
type facts struct {
	info    *hw.ConnInfo
	refusal *refusal
	why     hw.Reason
	asked   *arrival
}

// refusal is what the provider reports of an attempt that failed.
type refusal struct {
	why     hw.Reason
	private []byte
}

// arrival is a request that has come for a reserved endpoint.
type arrival struct {
	request  hw.Request
	announce func()
}
