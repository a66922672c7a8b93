package runtime

import (
	"godat/ep"
	"godat/hw"
)

// DTO is one request or receive of a batch of posts: see [ep.Endpoint.PostBatch],
// [ep.Endpoint.PostRecvBatch], [Conn.Do] and [Outbox]. Its fields: go doc godat/ep DTO.
type DTO = ep.DTO

// Op is an operation: what a [DTO] asks for, and what a completion was of. The
// numbers are those of DAT_DTOS, and of DAT_IB_DTOS for the InfiniBand extension's.
type Op = hw.Op

// The operations. The event of one that is marked as the InfiniBand extension's has
// the number [IBDTOEvent] in place of [DTOCompletion].
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

// OpSet is a set of operations, as [DeviceAttr] has one of what the device can do.
type OpSet = hw.OpSet

// Flags modify a post, or an endpoint's attributes: DAT_COMPLETION_FLAGS, with its
// numbers.
type Flags = hw.Flags

// The flags of posts.
const (
	Default       Flags = hw.Default
	Suppress      Flags = hw.Suppress      // no event if it succeeds: what verbs call unsignaled
	SolicitedWait Flags = hw.SolicitedWait // of a send: the peer's receive wakes its waiter
	Unsignalled   Flags = hw.Unsignalled   // the event comes, and wakes nobody by itself
	BarrierFence  Flags = hw.BarrierFence  // begin after all earlier reads, atomics and binds
	EVDThreshold  Flags = hw.EVDThreshold  // of an endpoint's attributes: its waiter is woken by the threshold alone
)

// CloseFlags say how a connection is given up: DAT_CLOSE_FLAGS, with its numbers.
type CloseFlags = ep.CloseFlags

// The ways to give up a connection.
const (
	Abrupt   CloseFlags = ep.Abrupt   // what is outstanding is flushed
	Graceful CloseFlags = ep.Graceful // what is outstanding runs to completion first
)

// ConnectFlags say what a connection is to be like: DAT_CONNECT_FLAGS.
type ConnectFlags = ep.ConnectFlags

// The flags of a connection. No provider has more than one path to a peer.
const (
	ConnectDefault     ConnectFlags = ep.ConnectDefault
	MultipathRequested ConnectFlags = ep.MultipathRequested // one path is good enough
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

// PSPFlags say who makes the endpoints of a service point: DAT_PSP_FLAGS, with its
// numbers.
type PSPFlags = ep.PSPFlags

// The makers of a service point's endpoints.
const (
	PSPConsumer PSPFlags = ep.PSPConsumer // the program, which accepts with one of its own
	PSPProvider PSPFlags = ep.PSPProvider // each request brings one, which Modify completes
)
