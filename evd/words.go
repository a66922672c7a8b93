package evd

import "godat/hw/event"

// Words of package event, under names of this package.
type (
	// Event is [event.Event].
	Event = event.Event
	// EventFlags is [event.Flags].
	EventFlags = event.Flags
	// Number is [event.Number].
	Number = event.Number
	// Error is [event.Error].
	Error = event.Error
	// Reason is [event.Reason].
	Reason = event.Reason
	// Streams is [event.Streams].
	Streams = event.Streams
	// DTO is [event.DTO].
	DTO = event.DTO
	// Connection is [event.Connection].
	Connection = event.Connection
)

// The words of package event.
const (
	Solicited             = event.Solicited
	HasImm                = event.HasImm
	Invalidated           = event.Invalidated
	Silent                = event.Silent
	DTOCompletion         = event.DTOCompletion
	BindCompletion        = event.BindCompletion
	ConnectionRequest     = event.ConnectionRequest
	Established           = event.Established
	PeerRejected          = event.PeerRejected
	NonPeerRejected       = event.NonPeerRejected
	AcceptCompletionError = event.AcceptCompletionError
	Disconnected          = event.Disconnected
	Broken                = event.Broken
	TimedOut              = event.TimedOut
	Unreachable           = event.Unreachable
	AsyncEVDOverflow      = event.AsyncEVDOverflow
	AsyncIACatastrophic   = event.AsyncIACatastrophic
	AsyncEPBroken         = event.AsyncEPBroken
	AsyncTimedOut         = event.AsyncTimedOut
	AsyncProviderError    = event.AsyncProviderError
	SoftwareEvent         = event.SoftwareEvent
	IBDTOEvent            = event.IBDTOEvent
	IACatastrophic        = event.IACatastrophic
	EPToError             = event.EPToError
	EVDOverflow           = event.EVDOverflow
	SRQToError            = event.SRQToError
	MemoryOther           = event.MemoryOther
	ReasonOther           = event.ReasonOther
	EPSoftHighWatermark   = event.EPSoftHighWatermark
	SRQLowWatermark       = event.SRQLowWatermark
	StreamSoftware        = event.StreamSoftware
	StreamCR              = event.StreamCR
	StreamDTO             = event.StreamDTO
	StreamConnection      = event.StreamConnection
	StreamBind            = event.StreamBind
	StreamAsync           = event.StreamAsync
	DefaultStreams        = event.DefaultStreams

	allStreams = DefaultStreams | StreamSoftware
)
