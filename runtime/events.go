package runtime

import (
	"context"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// Event is one thing that happened: a completion, a change of a connection, a
// connection request, a software event or an asynchronous error. It answers to
// DAT_EVENT.
//
// An Event is a value, and its receiver owns it. Number says of what kind it is; Err is
// nil if what the event tells of went well. [EndpointOf], [ConnOf], [RMROf], [SRQOf]
// and [RequestOf] give the objects that it is about. Its fields and methods: go doc
// godat/hw/event Event.
//
// Op is the operation of a completion, and means nothing in other events: OpSend is 0. A
// message that came is told by Op == OpRecv, or by [Conn.Message], which is nil for all
// other events.
type Event = event.Event

// EventNumber says of what kind an event is: DAT_EVENT_NUMBER, with its numbers.
type EventNumber = event.Number

// The event numbers. [event.Number.Completion] reports whether a number is that of a
// completion, of which there are three.
const (
	DTOCompletion  EventNumber = event.DTOCompletion  // of a send, a receive, an RDMA read or write
	IBDTOEvent     EventNumber = event.IBDTOEvent     // of the same for atomics and immediate data
	BindCompletion EventNumber = event.BindCompletion // of a bind; RMROf

	ConnectionRequest     EventNumber = event.ConnectionRequest     // RequestOf
	Established           EventNumber = event.Established           // on both sides; the endpoint is CONNECTED
	PeerRejected          EventNumber = event.PeerRejected          // the peer's program rejected, with private data
	NonPeerRejected       EventNumber = event.NonPeerRejected       // nothing listens there, or the peer's provider refused
	AcceptCompletionError EventNumber = event.AcceptCompletionError // an Accept led to no connection
	Disconnected          EventNumber = event.Disconnected          // the connection ended in order
	Broken                EventNumber = event.Broken                // an error ended the connection
	TimedOut              EventNumber = event.TimedOut              // ConnectConfig.Timeout ran out
	Unreachable           EventNumber = event.Unreachable           // no such address, or no way there

	SoftwareEvent EventNumber = event.SoftwareEvent // of Dispatcher.PostSoftware

	AsyncEVDOverflow    EventNumber = event.AsyncEVDOverflow    // an over-committed dispatcher lost events, or a device's queue did
	AsyncIACatastrophic EventNumber = event.AsyncIACatastrophic // the device or its port has failed
	AsyncEPBroken       EventNumber = event.AsyncEPBroken       // of endpoints and shared receive queues; Reason says why
	AsyncTimedOut       EventNumber = event.AsyncTimedOut
	AsyncProviderError  EventNumber = event.AsyncProviderError
)

// EventFlags say more about an event.
type EventFlags = event.Flags

// The flags of events.
const (
	EventSolicited   EventFlags = event.Solicited   // a receive whose send had SolicitedWait
	EventHasImm      EventFlags = event.HasImm      // Event.Key is immediate data
	EventInvalidated EventFlags = event.Invalidated // Event.Key is the context that the peer's send invalidated
	EventSilent      EventFlags = event.Silent      // the event by itself wakes no waiter
)

// Status is how an operation ended: DAT_DTO_COMPLETION_STATUS, with its numbers.
// Its Err is nil for a success and a [StatusError] for the others.
type Status = hw.Status

// The statuses. After any but StatusSuccess the connection is broken.
const (
	StatusSuccess          Status = hw.StatusSuccess
	StatusFlushed          Status = hw.StatusFlushed          // the connection ended first
	StatusLocalLength      Status = hw.StatusLocalLength      // longer than the receive, or than the transport can carry
	StatusLocalEP          Status = hw.StatusLocalEP          // the queue pair failed
	StatusLocalProtection  Status = hw.StatusLocalProtection  // a region here is gone, or its zone, bounds or privilege forbids it
	StatusBadResponse      Status = hw.StatusBadResponse      // the peer's response made no sense
	StatusRemoteAccess     Status = hw.StatusRemoteAccess     // the peer's context, bounds, zone or privilege forbids it
	StatusRemoteResponder  Status = hw.StatusRemoteResponder  // the peer could not complete it
	StatusTransport        Status = hw.StatusTransport        // no more retries, or the peer is gone
	StatusReceiverNotReady Status = hw.StatusReceiverNotReady // the peer posted no receive in time
	StatusPartialPacket    Status = hw.StatusPartialPacket
	StatusBindFailed       Status = hw.StatusBindFailed // a bind, unbind or invalidate failed
)

// Completion is the data of an event that tells of a completion:
// DAT_DTO_COMPLETION_EVENT_DATA. [event.Event.DTO] gives it. The fields of the event say
// the same.
type Completion = event.DTO

// ConnectionChange is the data of an event that tells of a connection:
// DAT_CONNECTION_EVENT_DATA. [event.Event.Connection] gives it.
type ConnectionChange = event.Connection

// Reason says why an asynchronous error came; [event.Event.Async] gives it. The numbers
// are DAT's, which numbers the reasons anew for each kind of object: what a number
// means depends on the event's source.
type Reason = event.Reason

// The reasons, by the kind of object.
const (
	ReasonIACatastrophic      Reason = event.IACatastrophic      // IA
	ReasonEPToError           Reason = event.EPToError           // EP: the device put its queue pair into the error state
	ReasonEPSoftHighWatermark Reason = event.EPSoftHighWatermark // EP: it holds many receives of its shared queue
	ReasonEVDOverflow         Reason = event.EVDOverflow         // EVD
	ReasonSRQToError          Reason = event.SRQToError          // SRQ: the device put it into the error state
	ReasonSRQLowWatermark     Reason = event.SRQLowWatermark     // SRQ: few receives are left
	ReasonMemoryOther         Reason = event.MemoryOther         // LMR, RMR, PZ
	ReasonOther               Reason = event.ReasonOther         // IA, EP, EVD, SRQ
)

// DispatcherMode says how a dispatcher delivers events. It is chosen when the
// dispatcher is made.
type DispatcherMode = evd.Mode

// The modes of a dispatcher.
const (
	ModeQueue    DispatcherMode = evd.ModeQueue    // Dequeue, Wait, Events and CNOs: DAT's own way
	ModeChannel  DispatcherMode = evd.ModeChannel  // each event on the channel C
	ModeBatch    DispatcherMode = evd.ModeBatch    // batches of events on the channel Batches
	ModeCallback DispatcherMode = evd.ModeCallback // calls of DispatcherConfig.Callback
)

// Streams are kinds of events that a dispatcher takes: DAT_EVD_FLAGS, with its
// numbers.
type Streams = event.Streams

// The streams of a dispatcher.
const (
	StreamSoftware   Streams = event.StreamSoftware   // what the program posts
	StreamCR         Streams = event.StreamCR         // connection requests
	StreamDTO        Streams = event.StreamDTO        // completions, those of the InfiniBand extension too
	StreamConnection Streams = event.StreamConnection // beginnings and ends of connections
	StreamBind       Streams = event.StreamBind       // completions of binds
	StreamAsync      Streams = event.StreamAsync      // asynchronous errors
	DefaultStreams   Streams = event.DefaultStreams   // all but software events
)

// Until makes a context that ends when the channel is closed, for Wait and other calls
// that a context ends. With it, a program that ends by a channel needs no goroutine
// that cancels a context. The program closes the channel and never sends on it.
func Until(done <-chan struct{}) context.Context { return evd.Until(done) }
