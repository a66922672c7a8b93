package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// The memory privileges.
const (
	NoPrivileges  = hw.NoPrivileges
	LocalRead     = hw.LocalRead
	LocalWrite    = hw.LocalWrite
	RemoteRead    = hw.RemoteRead
	RemoteWrite   = hw.RemoteWrite
	RemoteAtomic  = hw.RemoteAtomic
	AllPrivileges = hw.AllPrivileges
)

// The completion flags.
const (
	Default       = hw.Default
	Suppress      = hw.Suppress
	SolicitedWait = hw.SolicitedWait
	Unsignalled   = hw.Unsignalled
	BarrierFence  = hw.BarrierFence
	EVDThreshold  = hw.EVDThreshold
)

// The operations of DTOs and of their events.
const (
	OpSend  = hw.OpSend
	OpWrite = hw.OpWrite
	OpRead  = hw.OpRead
	OpRecv  = hw.OpRecv
	OpBind  = hw.OpBind
)

// The completion statuses.
const (
	StatusSuccess          = hw.StatusSuccess
	StatusFlushed          = hw.StatusFlushed
	StatusLocalLength      = hw.StatusLocalLength
	StatusLocalEP          = hw.StatusLocalEP
	StatusLocalProtection  = hw.StatusLocalProtection
	StatusBadResponse      = hw.StatusBadResponse
	StatusRemoteAccess     = hw.StatusRemoteAccess
	StatusRemoteResponder  = hw.StatusRemoteResponder
	StatusTransport        = hw.StatusTransport
	StatusReceiverNotReady = hw.StatusReceiverNotReady
	StatusPartialPacket    = hw.StatusPartialPacket
	StatusBindFailed       = hw.StatusBindFailed
)

// The modes of a dispatcher.
const (
	ModeQueue    = evd.ModeQueue
	ModeChannel  = evd.ModeChannel
	ModeBatch    = evd.ModeBatch
	ModeCallback = evd.ModeCallback
)

// The streams of a dispatcher.
const (
	StreamSoftware   = evd.StreamSoftware
	StreamCR         = evd.StreamCR
	StreamDTO        = evd.StreamDTO
	StreamConnection = evd.StreamConnection
	StreamBind       = evd.StreamBind
	StreamAsync      = evd.StreamAsync
	DefaultStreams   = evd.DefaultStreams
)

// The event numbers.
const (
	DTOCompletion         = evd.DTOCompletion
	BindCompletion        = evd.BindCompletion
	ConnectionRequest     = evd.ConnectionRequest
	Established           = evd.Established
	PeerRejected          = evd.PeerRejected
	NonPeerRejected       = evd.NonPeerRejected
	AcceptCompletionError = evd.AcceptCompletionError
	Disconnected          = evd.Disconnected
	Broken                = evd.Broken
	TimedOut              = evd.TimedOut
	Unreachable           = evd.Unreachable
	SoftwareEvent         = evd.SoftwareEvent
	AsyncEVDOverflow      = evd.AsyncEVDOverflow
	AsyncIACatastrophic   = evd.AsyncIACatastrophic
	AsyncEPBroken         = evd.AsyncEPBroken
	AsyncTimedOut         = evd.AsyncTimedOut
	AsyncProviderError    = evd.AsyncProviderError
)

// The ways to give up a connection.
const (
	Abrupt   = ep.Abrupt
	Graceful = ep.Graceful
)

// What a connection is to be like.
const (
	ConnectDefault     = ep.ConnectDefault
	MultipathRequested = ep.MultipathRequested
	MultipathRequired  = ep.MultipathRequired
)

// The service types.
const (
	ReliableConnection = ep.ReliableConnection
	UnreliableDatagram = ep.UnreliableDatagram
)

// The makers of a service point's endpoints.
const (
	PSPConsumer = ep.PSPConsumer
	PSPProvider = ep.PSPProvider
)

// NoDTOs asks for none in an [EndpointAttr], where 0 would mean the default.
const NoDTOs = ep.NoDTOs

// The states of an endpoint that this version enters.
const (
	StateUnconnected                = ep.Unconnected
	StateReserved                   = ep.Reserved
	StatePassiveConnectionPending   = ep.PassiveConnectionPending
	StateActiveConnectionPending    = ep.ActiveConnectionPending
	StateTentativeConnectionPending = ep.TentativeConnectionPending
	StateConnected                  = ep.Connected
	StateDisconnectPending          = ep.DisconnectPending
	StateDisconnected               = ep.Disconnected
	StateCompletionPending          = ep.CompletionPending
)

// The states of a shared receive queue.
const (
	SRQError       = ep.SRQError
	SRQOperational = ep.SRQOperational
)

// What queries are asked for, when it is everything. The single fields are in
// the packages of the objects.
const (
	EndpointFieldAll   = ep.FieldAll
	PSPFieldAll        = ep.PSPFieldAll
	RSPFieldAll        = ep.RSPFieldAll
	CSPFieldAll        = ep.CSPFieldAll
	DispatcherFieldAll = evd.FieldAll
	SRQFieldAll        = ep.SRQFieldAll
	CNOFieldAll        = evd.CNOFieldAll
	LMRFieldAll        = mem.LMRFieldAll
	RMRFieldAll        = mem.RMRFieldAll
	PZFieldAll         = mem.PZFieldAll
)
