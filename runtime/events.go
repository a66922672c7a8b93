package runtime

import (
	"context"

	"godat/evd"
	"godat/hw"
)

// Event is one thing that happened: a completion, a change of a connection, a
// connection request, a software event or an asynchronous error. It answers to
// DAT_EVENT.
//
// It is a value, and whoever receives it owns it. Number says of what kind it is;
// Err is nil if what it tells of went well. [EndpointOf], [ConnOf], [RMROf],
// [SRQOf] and [RequestOf] give the objects that it is about. Its fields and
// methods: go doc godat/evd Event.
type Event = evd.Event

// EventNumber says of what kind an event is: DAT_EVENT_NUMBER, with its numbers.
type EventNumber = evd.Number

// The event numbers. [evd.Number.Completion] reports whether a number is that of a
// completion, of which there are three.
const (
	DTOCompletion  EventNumber = evd.DTOCompletion  // of a send, a receive, an RDMA read or write
	IBDTOEvent     EventNumber = evd.IBDTOEvent     // of the same for atomics and immediate data
	BindCompletion EventNumber = evd.BindCompletion // of a bind; RMROf

	ConnectionRequest     EventNumber = evd.ConnectionRequest     // RequestOf
	Established           EventNumber = evd.Established           // on both sides; the endpoint is CONNECTED
	PeerRejected          EventNumber = evd.PeerRejected          // the peer's program rejected, with private data
	NonPeerRejected       EventNumber = evd.NonPeerRejected       // nobody listens there, or the peer's provider refused
	AcceptCompletionError EventNumber = evd.AcceptCompletionError // an Accept did not lead to a connection
	Disconnected          EventNumber = evd.Disconnected          // the connection ended in order
	Broken                EventNumber = evd.Broken                // an error ended the connection
	TimedOut              EventNumber = evd.TimedOut              // ConnectConfig.Timeout ran out
	Unreachable           EventNumber = evd.Unreachable           // no such address, or no way there

	SoftwareEvent EventNumber = evd.SoftwareEvent // of Dispatcher.PostSoftware

	AsyncEVDOverflow    EventNumber = evd.AsyncEVDOverflow    // an over-committed dispatcher lost events, or a device's queue did
	AsyncIACatastrophic EventNumber = evd.AsyncIACatastrophic // the device is of no use any more
	AsyncEPBroken       EventNumber = evd.AsyncEPBroken       // of endpoints and shared receive queues; Reason says why
	AsyncTimedOut       EventNumber = evd.AsyncTimedOut
	AsyncProviderError  EventNumber = evd.AsyncProviderError
)

// EventFlags say more of an event.
type EventFlags = evd.EventFlags

// The flags of events.
const (
	EventSolicited   EventFlags = evd.Solicited   // a receive whose send had SolicitedWait
	EventHasImm      EventFlags = evd.HasImm      // Event.Key is immediate data
	EventInvalidated EventFlags = evd.Invalidated // Event.Key is the context that the peer's send invalidated
	EventSilent      EventFlags = evd.Silent      // it woke nobody by itself
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
// DAT_DTO_COMPLETION_EVENT_DATA. [evd.Event.DTO] gives it; the event's own fields
// say the same.
type Completion = evd.DTO

// ConnectionChange is the data of an event that tells of a connection:
// DAT_CONNECTION_EVENT_DATA. [evd.Event.Connection] gives it.
type ConnectionChange = evd.Connection

// Reason says why an asynchronous error came; [evd.Event.Async] gives it. The
// numbers are DAT's, which has a row of them for each kind of object: what one
// means depends on the event's source.
type Reason = evd.Reason

// The reasons, by the kind of object.
const (
	ReasonIACatastrophic      Reason = evd.IACatastrophic      // IA
	ReasonEPToError           Reason = evd.EPToError           // EP: the device gave its queue pair up
	ReasonEPSoftHighWatermark Reason = evd.EPSoftHighWatermark // EP: it holds many receives of its shared queue
	ReasonEVDOverflow         Reason = evd.EVDOverflow         // EVD
	ReasonSRQToError          Reason = evd.SRQToError          // SRQ: the device gave it up
	ReasonSRQLowWatermark     Reason = evd.SRQLowWatermark     // SRQ: few receives are left
	ReasonMemoryOther         Reason = evd.MemoryOther         // LMR, RMR, PZ
	ReasonOther               Reason = evd.ReasonOther         // IA, EP, EVD, SRQ
)

// DispatcherMode says how a dispatcher delivers. It is chosen when the dispatcher
// is made.
type DispatcherMode = evd.Mode

// The modes of a dispatcher.
const (
	ModeQueue    DispatcherMode = evd.ModeQueue    // Dequeue, Wait, Events and CNOs: DAT's own way
	ModeChannel  DispatcherMode = evd.ModeChannel  // each event on the channel C
	ModeBatch    DispatcherMode = evd.ModeBatch    // batches of events on the channel Batches
	ModeCallback DispatcherMode = evd.ModeCallback // calls of DispatcherConfig.Callback
)

// Filter decides for a dispatcher of [ModeChannel] which events go into its channel;
// it is [DispatcherConfig]'s.
type Filter = evd.Filter

// Streams are kinds of events that a dispatcher takes: DAT_EVD_FLAGS, with its
// numbers.
type Streams = evd.Streams

// The streams of a dispatcher.
const (
	StreamSoftware   Streams = evd.StreamSoftware   // what the program posts
	StreamCR         Streams = evd.StreamCR         // connection requests
	StreamDTO        Streams = evd.StreamDTO        // completions, those of the InfiniBand extension too
	StreamConnection Streams = evd.StreamConnection // beginnings and ends of connections
	StreamBind       Streams = evd.StreamBind       // completions of binds
	StreamAsync      Streams = evd.StreamAsync      // asynchronous errors
	DefaultStreams   Streams = evd.DefaultStreams   // all but software events
)

// Until makes a context that ends when the channel is closed, for Wait and the
// other calls that a context ends: a program with a channel for its end needs no
// goroutine to cancel a context. The channel is closed, never sent to.
func Until(done <-chan struct{}) context.Context { return evd.Until(done) }
