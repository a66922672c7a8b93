package hw

import (
	"net"
	"time"
)

// Provider opens devices of one kind. Its methods may be called from any
// goroutine.
type Provider interface {
	// Name is the provider's name, the first part of the names that a program opens:
	// "loop", "iwarp".
	Name() string

	// Open opens the device that cfg names. It may block.
	Open(cfg OpenConfig) (Device, error)
}

// OpenConfig says which device to open and how.
type OpenConfig struct {
	// Device picks one of the provider's devices; empty means its default.
	Device string

	// Params holds the provider's own settings, as DAT's registry file gives
	// them. A provider refuses a key that it does not know.
	Params map[string]string

	// Async is called with each error that belongs to no work request. It must
	// not block; a nil Async drops the errors.
	Async func(AsyncEvent)
}

// Device is one opened device. Its methods may be called from any goroutine;
// NewZone, NewQP, Register, Listen and Close may block.
//
// Rare powers are optional interfaces, found by assertion: [Polled], [Progresser],
// [SharedReceiver], [Binder], [Pairer]. Operations that a device can't do are missing
// from Attr().Ops, and posting one is refused.
type Device interface {
	// Attr reports the device's limits and powers. They never change.
	Attr() Attr

	// NewZone makes a protection zone. A queue pair reaches only memory of its own
	// zone.
	NewZone() (Zone, error)

	// NewQP makes a queue pair that is not connected.
	NewQP(cfg QPConfig) (QP, error)

	// Register makes mem reachable for work requests of the zone's queue pairs,
	// with those privileges. The caller keeps mem in place (outside the Go heap,
	// or pinned) until Deregister has returned. Addresses in work requests are
	// virtual addresses within mem.
	Register(zone Zone, mem []byte, priv Privileges) (MR, error)

	// Listen asks for connection requests that arrive for cfg.Qual.
	Listen(cfg ListenConfig) (Listener, error)

	// Close frees the device. It fails with IA_IN_USE, and does nothing, while
	// anything that was made on the device is open. It refuses the connection requests
	// that have no answer, and waits for a Reject that is under way.
	Close() error
}

// Zone is a protection zone (a verbs protection domain).
type Zone interface {
	// Close fails with PZ_IN_USE while a queue pair or region uses the zone.
	Close() error
}

// MR is a registered memory region.
type MR interface {
	// LKey is the key by which local segments name the region.
	LKey() uint32
	// RKey is the key by which a peer names the region; 0 when Register was given
	// no remote privilege.
	RKey() uint32
	// Bound reports whether a window is bound to the region, so that Deregister
	// would fail. A device that can't tell returns false. Any goroutine may call
	// it.
	Bound() bool
	// Deregister invalidates both keys and waits until every access in progress
	// has stopped: once it has returned, no byte of the memory is read or changed.
	// It waits for a chunk of a copy at most, never for a peer. Work that has not
	// begun yet fails with StatusLocalProtection or StatusRemoteAccess.
	Deregister() error
}

// QPConfig configures a queue pair.
type QPConfig struct {
	Zone Zone

	// SendSink and RecvSink take the completions of the two queues, on a device
	// that delivers completions by itself. On a [Polled] device they are nil, and
	// the requests complete into SendCQ and RecvCQ.
	SendSink, RecvSink Sink
	SendCQ, RecvCQ     CQ

	// SRQ, when set, is the queue that receives come from; it is of the same zone.
	// PostRecv on the queue pair is then refused, and the receive queue still ends
	// with an OpEnd.
	SRQ SRQ

	// Facts hears what happens to the connection.
	Facts Facts

	// SendDepth and RecvDepth are the most work requests outstanding per queue.
	// The owner never exceeds them, so a post always finds room.
	SendDepth, RecvDepth int
	// SendSegments and RecvSegments are the most segments of a request.
	SendSegments, RecvSegments int
	// ReadsIn and ReadsOut are the most RDMA reads and atomics outstanding from
	// and towards the peer. Further ones wait their turn.
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
	// it succeeds without WRSignaled. The caller may use wrs again on return; it
	// leaves each SGL's segments unchanged until the request has completed. When
	// n < len(wrs), err says why, and the requests from n on are not posted.
	//
	// The owner calls it from Facts.Established on; on the passive side also once
	// a receive has completed with success (see Facts.Established).
	PostSend(wrs []SendWR) (n int, err error)

	// PostRecv is PostSend for the receive queue. Receives may be posted before
	// the connection exists.
	PostRecv(wrs []RecvWR) (n int, err error)

	// Connect starts to connect; Facts hears the outcome. An error means that the
	// attempt did not start and that Facts hears nothing.
	Connect(cfg ConnectConfig) error

	// Drain starts an orderly end: the requests posted so far run to completion,
	// then the provider calls Facts.Down(ReasonDrained). The owner posts nothing
	// to the send queue after it. If the provider tells the peer of the end before
	// Break, the peer hears of an orderly end.
	Drain()

	// Break ends the connection, or the attempt at one, at once. Outstanding
	// requests complete with StatusFlushed, or with the outcome that they already
	// have; then each queue ends with OpEnd, even if the queue pair never
	// connected. The peer hears Down(ReasonPeer) when orderly is set and
	// Down(ReasonBroken) otherwise. The owner calls Break once per life.
	Break(orderly bool)

	// Reset makes the queue pair as new. The owner calls it when both queues have
	// ended.
	Reset() error

	// Close frees the queue pair, which must be new or reset, or have both queues
	// ended. Receives posted to a new or reset one are dropped: they do not
	// complete.
	Close() error
}

// Sink takes the completions of one queue: in order, from one goroutine at a
// time. Complete never blocks, and keeps no part of wcs. The owner may call the queue pair
// before Complete returns, unless it is in a call on it.
type Sink interface {
	Complete(wcs []WC)
}

// Facts hears what happens to a queue pair's connection. The methods don't block; the
// provider may call them from inside a call on the queue pair, and otherwise the owner may
// call the queue pair before they return (see the package documentation). Per life it
// calls at most one of Established and Refused, and after Established at most one Down.
type Facts interface {
	// Established reports that the connection is up. On the passive side
	// completions may come before it. A receive that completes with success tells
	// the owner the same: from then on the owner may post to the send queue and
	// call Drain.
	Established(info ConnInfo)
	// Refused reports that the attempt failed. private is the data of the peer's
	// reject; cause holds the addresses and says what exactly went wrong. The owner
	// calls Break next.
	Refused(why Reason, private []byte, cause *Cause)
	// Down reports that the connection is over, and not by Break. With ReasonBroken
	// cause says what exactly went wrong; with the others it may be nil. The owner
	// calls Break next; until then the provider takes posts and flushes them.
	Down(why Reason, cause *Cause)
}

// ConnInfo describes an established connection. Private is the callee's to keep, and nil if there is none.
type ConnInfo struct {
	Local, Remote     net.Addr
	ReadsIn, ReadsOut int    // as the two ends agreed
	Private           []byte // the accept's private data; nil on the passive side
}

// MaxQual is the highest connection qualifier. DAT gives a qualifier 64 bits, but
// every provider takes a port number, even one that has no ports: so a program that
// runs over one provider runs over another.
const MaxQual = 1<<16 - 1

// ConnectConfig says where to connect.
type ConnectConfig struct {
	Addr    string // names a host, in the provider's notation
	Qual    uint64 // connection qualifier: the port, up to MaxQual
	Private []byte // the provider copies it
	// Timeout bounds the attempt, for providers that can pass it on. When it runs
	// out, the owner calls Break in any case. 0 means no bound, but for one that the
	// provider has.
	Timeout time.Duration
}

// ListenConfig says what to listen for.
type ListenConfig struct {
	Addr    string // local address; empty means all
	Qual    uint64 // up to MaxQual; 0 lets the provider choose
	Backlog int    // the most requests on their way to OnRequest; 0 means the provider's default
	// OnRequest is called with each request whose private data is complete. It
	// does not block, and may make a queue pair; on false the provider refuses the
	// request with a reject of its own. A request that is on its way while the
	// listener closes may come after Close has returned.
	OnRequest func(Request) bool
	// OnDrop, if set, is called when the provider gives up a peer's attempt whose request
	// is not complete, because there are too many or the system lacks what a connection
	// takes, and when it begins to fail to take attempts at all. It must not block. It may ask for
	// the listener's counts, and does not call Close, which waits for it.
	OnDrop func(*Cause)
}

// Listener stops listening when closed. Requests it has handed out stay valid.
type Listener interface {
	// Addr is the address at which it listens.
	Addr() net.Addr
	// Qual is its connection qualifier, also where the provider chose it.
	Qual() uint64
	// Close frees the qualifier. A second call fails with INVALID_HANDLE.
	Close() error
}

// Request is a connection request that waits for an answer. Exactly one of
// Accept and Reject is called; a second answer fails with INVALID_HANDLE.
type Request interface {
	// Private returns the peer's private data, nil if there is none, which the caller may keep;
	// truncated says that the transport could not carry all of it.
	Private() (data []byte, truncated bool)
	// Local is this end's address.
	Local() net.Addr
	// Remote is the asking side's address.
	Remote() net.Addr
	// Qual is the qualifier that the request came for.
	Qual() uint64
	// Accept binds the request to a queue pair that is new or reset. The queue
	// pair's Facts hears the outcome: Established, or Refused when the peer has
	// gone. The call counts as one on that queue pair. An error means that neither
	// follows and that the request is dead.
	Accept(qp QP, private []byte) error
	// Reject refuses the request; the peer hears ReasonPeerRejected. The request
	// counts as answered even if Reject fails.
	Reject(private []byte) error
}
