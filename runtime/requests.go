package runtime

import (
	"godat/ep"
	"godat/hw"
)

// DTO is one request or receive of a batch of posts: see [ep.Endpoint.PostBatch],
// [ep.Endpoint.PostRecvBatch], [Conn.Do] and [Outbox]. Its fields: go doc godat/ep DTO.
type DTO = ep.DTO

// Op is an operation: of a [DTO], or of a completion. The numbers are those of
// DAT_DTOS, and of DAT_IB_DTOS for the operations of the InfiniBand extension.
type Op = hw.Op

// The operations. The event of an operation that is marked as the InfiniBand
// extension's has the number [IBDTOEvent] in place of [DTOCompletion].
const (
	OpSend           Op = hw.OpSend           // also the completion of OpSendInvalidate
	OpWrite          Op = hw.OpWrite          // RDMA write
	OpRead           Op = hw.OpRead           // RDMA read; also the completion of OpReadToRMR
	OpRecv           Op = hw.OpRecv           // a receive, of a send
	OpRecvInvalidate Op = hw.OpRecvInvalidate // a receive, of a send that invalidated a context here
	OpBind           Op = hw.OpBind           // bind or unbind a window
	OpWriteImm       Op = hw.OpWriteImm       // RDMA write with immediate data: InfiniBand extension
	OpRecvImm        Op = hw.OpRecvImm        // a receive, of a write with immediate data: InfiniBand extension
	OpFetchAdd       Op = hw.OpFetchAdd       // InfiniBand extension
	OpCompareSwap    Op = hw.OpCompareSwap    // InfiniBand extension
	OpSendInvalidate Op = hw.OpSendInvalidate // send, and invalidate a context of the peer's
	OpReadToRMR      Op = hw.OpReadToRMR      // RDMA read into a window
)

// OpSet is a set of operations. [DeviceAttr] has the set that a device can do.
type OpSet = hw.OpSet

// Flags modify a post, or an endpoint's attributes: DAT_COMPLETION_FLAGS, with its
// numbers.
type Flags = hw.Flags

// The flags of posts.
const (
	Default       Flags = hw.Default
	Suppress      Flags = hw.Suppress      // no event if it succeeds: what verbs call unsignaled
	SolicitedWait Flags = hw.SolicitedWait // of a send: the peer's receive wakes the peer's waiter
	Unsignalled   Flags = hw.Unsignalled   // the event comes, but by itself wakes no waiter
	BarrierFence  Flags = hw.BarrierFence  // the operation begins after all earlier reads, atomics and binds
	EVDThreshold  Flags = hw.EVDThreshold  // of an endpoint's attributes: only the threshold wakes the waiter
)

// CloseFlags say how Disconnect ends a connection: DAT_CLOSE_FLAGS, with its numbers.
type CloseFlags = ep.CloseFlags

// The ways to end a connection.
const (
	Abrupt   CloseFlags = ep.Abrupt   // what is outstanding is flushed
	Graceful CloseFlags = ep.Graceful // what is outstanding runs to completion first
)

// ConnectFlags say what kind of connection an endpoint asks for: DAT_CONNECT_FLAGS.
type ConnectFlags = ep.ConnectFlags

// The flags of a connection. No provider has more than one path to a peer.
const (
	ConnectDefault     ConnectFlags = ep.ConnectDefault
	MultipathRequested ConnectFlags = ep.MultipathRequested // accepts a single path
	MultipathRequired  ConnectFlags = ep.MultipathRequired  // MODEL_NOT_SUPPORTED
)

// ServiceType is a kind of connection: DAT_SERVICE_TYPE.
type ServiceType = ep.ServiceType

// The kinds of connections.
const (
	ReliableConnection ServiceType = ep.ReliableConnection // the only one that an endpoint can have
	UnreliableDatagram ServiceType = ep.UnreliableDatagram // MODEL_NOT_SUPPORTED
)

// QoS is a quality of service: DAT_QOS.
type QoS = ep.QoS

// BestEffort is the only quality of service.
const BestEffort QoS = ep.BestEffort

// PSPFlags say whether the program or the provider makes the endpoints of a service
// point: DAT_PSP_FLAGS, with its numbers.
type PSPFlags = ep.PSPFlags

// The makers of a service point's endpoints.
const (
	PSPConsumer PSPFlags = ep.PSPConsumer // the program, which accepts with one of its own
	PSPProvider PSPFlags = ep.PSPProvider // each request brings an endpoint, which Modify completes
)
