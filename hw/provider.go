package hw

import (
	"net"
	"time"
)

// Provider opens devices of one kind. Its methods may be called from any
// goroutine.
type Provider interface {
	// Name is the first part of the names that Open takes: "loop", "iwarp".
	Name() string

	// Open opens the device that cfg names. It may block.
	Open(cfg OpenConfig) (Device, error)
}

// OpenConfig says which device to open and how.
type OpenConfig struct {
	// Device picks one of the provider's devices; empty means its default.
	Device string

	// Params are the provider's own settings, as DAT's registry file gives
	// them. A provider refuses a key that it does not know.
	Params map[string]string

	// Async takes errors that belong to no work request. It must not block;
	// nil drops them.
	Async func(AsyncEvent)
}

// Device is one opened device. Its methods may be called from any goroutine;
// NewZone, NewQP, Register, Listen and Close may block.
//
// Rare powers are optional interfaces, found by assertion: [Polled],
// [SharedReceiver], [Binder]. Operations that a device can't do are missing
// from Attr().Ops, and posting one is refused.
type Device interface {
	// Attr reports the device's limits and powers. They never change.
	Attr() Attr

	// NewZone makes a protection zone: queue pairs reach only memory of theirs.
	NewZone() (Zone, error)

	// NewQP makes a queue pair that is not connected.
	NewQP(cfg QPConfig) (QP, error)

	// Register makes mem reachable for work requests of the zone's queue pairs,
	// with those privileges. The memory stays where it is until Deregister
	// returned: outside the Go heap, or pinned. Addresses in work requests are
	// virtual addresses within mem.
	Register(zone Zone, mem []byte, priv Privileges) (MR, error)

	// Listen asks for connection requests that arrive for cfg.Qual.
	Listen(cfg ListenConfig) (Listener, error)

	// Close frees the device. Everything made on it is closed already, or
	// Close fails with IA_IN_USE and does nothing.
	Close() error
}

// Zone is a protection zone (a verbs protection domain).
type Zone interface {
	// Close fails with PZ_IN_USE while a queue pair or region uses the zone.
	Close() error
}

// MR is a registered memory region.
type MR interface {
	// LKey is what local segments name the region by.
	LKey() uint32
	// RKey is what a peer names the region by; 0 when no remote privilege was
	// asked for.
	RKey() uint32
	// Bound reports whether a window is bound to the region, so that Deregister
	// would fail. A device that can't tell says false. Any goroutine may ask.
	Bound() bool
	// Deregister makes both keys dead, waits until whatever was touching the
	// memory has stopped, and returns: from then on no byte of it changes and
	// none is read. It waits for a chunk of a copy at most, never for a peer.
	// Work not begun yet fails with LocalProtection or RemoteAccess.
	Deregister() error
}

// QPConfig configures a queue pair.
type QPConfig struct {
	Zone Zone

	// SendSink and RecvSink take the completions of each queue, from a provider
	// that completes by itself. On a [Polled] device they are nil, and SendCQ
	// and RecvCQ name the queues to complete into.
	SendSink, RecvSink Sink
	SendCQ, RecvCQ     CQ

	// SRQ, when set, is where receives come from; it is of the same zone. PostRecv
	// is then refused, and the receive queue still ends with an OpEnd.
	SRQ SRQ

	// Facts hears of the connection.
	Facts Facts

	// SendDepth and RecvDepth are the most work requests outstanding. The owner
	// never exceeds them, so a post finds room.
	SendDepth, RecvDepth int
	// SendSegments and RecvSegments are the most segments of a request.
	SendSegments, RecvSegments int
	// ReadsIn and ReadsOut are the most RDMA reads and atomics outstanding from
	// and towards the peer. What exceeds them waits its turn.
	ReadsIn, ReadsOut int
	// NotReady is how long a send waits for the peer to post a receive before it
	// fails with StatusReceiverNotReady; 0 fails at once. It has no effect on a
	// device without Attr.NotReadyWait.
	NotReady time.Duration

	// SendEnd and RecvEnd are the ids of each queue's OpEnd completion.
	SendEnd, RecvEnd uint64
	// Number is echoed in WC.QP of completions whose receive came from an SRQ.
	Number uint32
}

// QP is a queue pair. Its owner calls its methods one at a time; none blocks.
type QP interface {
	// PostSend appends requests to the send queue and reports how many it took.
	// Each of those completes exactly once, in order: by a WC, or silently when
	// it succeeded and was not asked to be signaled. The array is the caller's
	// again on return; what each SGL points to stays unchanged until its request
	// has completed. When n < len(wrs), err says why; the rest is untouched.
	//
	// It is called from Facts.Established on, and on the passive side also from
	// the first receive on that has completed with success: see there.
	PostSend(wrs []SendWR) (n int, err error)

	// PostRecv is PostSend for the receive queue. Receives may be posted before
	// the connection exists.
	PostRecv(wrs []RecvWR) (n int, err error)

	// Connect starts to connect; the facts tell the outcome. An error means that
	// it did not start and no fact follows.
	Connect(cfg ConnectConfig) error

	// Drain starts an orderly end: the requests posted so far run to completion,
	// then Facts.Down(ReasonDrained) is reported. Nothing is posted to the send
	// queue after it. A peer that is told of the end before Break hears of an
	// orderly one.
	Drain()

	// Break ends the connection, or the attempt at one, at once. Outstanding
	// requests complete with StatusFlushed, or as they did; then each queue ends
	// with OpEnd, on a queue pair that never connected too. The peer hears
	// Down(ReasonPeer) when orderly is set and Down(ReasonBroken) otherwise.
	// Break is called once per life.
	Break(orderly bool)

	// Reset makes the queue pair as new. Both queues have ended.
	Reset() error

	// Close frees the queue pair. It is new, reset, or both queues have ended.
	// Receives posted to a new or reset one are dropped: they do not complete.
	Close() error
}

// Sink takes the completions of one queue: in order, from one goroutine at a
// time. It never blocks, and keeps nothing of the array.
type Sink interface {
	Complete(wcs []WC)
}

// Facts hears what happens to a queue pair's connection. The methods record
// and return; they may be called from inside a call on the queue pair. At most
// one of Established and Refused is called, then at most one Down, which only
// an established connection has.
type Facts interface {
	// Established: the connection is up. On the passive side completions may
	// have come before it; a receive that succeeded says the same to the owner,
	// who from then on may post to the send queue, and call Drain.
	Established(info ConnInfo)
	// Refused: the attempt failed. cause says to whom, and what exactly went wrong.
	// Break follows.
	Refused(why Reason, private []byte, cause *Cause)
	// Down: the connection is over, and not by Break. With ReasonBroken cause says
	// what exactly went wrong; with the others it may be nil. Break follows; until
	// then posts are taken and flushed.
	Down(why Reason, cause *Cause)
}

// ConnInfo describes an established connection. Private is the callee's to keep.
type ConnInfo struct {
	Local, Remote     net.Addr
	ReadsIn, ReadsOut int    // what was agreed
	Private           []byte // the accept's private data; nil on the passive side
}

// MaxQual is the last connection qualifier. DAT gives it 64 bits, but it is a port
// everywhere, also where the provider has no ports: a program that runs over one
// provider runs over another.
const MaxQual = 1<<16 - 1

// ConnectConfig says where to connect.
type ConnectConfig struct {
	Addr    string // the provider's way to name a host
	Qual    uint64 // connection qualifier: the port, up to MaxQual
	Private []byte // the provider copies it
	// Timeout bounds the attempt for providers that can pass it on; the owner
	// breaks the attempt in any case when it runs out. 0 means no bound.
	Timeout time.Duration
}

// ListenConfig says what to listen for.
type ListenConfig struct {
	Addr    string // local address; empty means all
	Qual    uint64 // up to MaxQual; 0 lets the provider choose
	Backlog int    // the most requests on their way to OnRequest; 0 means the provider's default
	// OnRequest takes a request whose private data is complete. It records it
	// and returns; false refuses it as the provider's own reject. A request that
	// is on its way while the listener closes may come after Close returned.
	OnRequest func(Request) bool
}

// Listener stops listening when closed. Requests it has handed out stay valid.
type Listener interface {
	Addr() net.Addr
	Qual() uint64
	Close() error
}

// Request is a connection request that waits for an answer. Exactly one of
// Accept and Reject is called; a second answer fails with INVALID_HANDLE.
type Request interface {
	// Private is the peer's private data and the callee's to keep; truncated
	// says that the transport could not carry all of it.
	Private() (data []byte, truncated bool)
	Local() net.Addr
	Remote() net.Addr
	Qual() uint64
	// Accept binds the request to a queue pair that is new or reset; its facts
	// tell the outcome: Established, or Refused when the peer has gone. The call
	// counts as one on that queue pair. An error means that neither follows and
	// the request is dead.
	Accept(qp QP, private []byte) error
	// Reject refuses the request; the peer hears ReasonPeerRejected. It is an
	// answer even if it fails.
	Reject(private []byte) error
}
