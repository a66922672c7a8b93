package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/mem"
)

// PostSend sends the segments as one message, which consumes a receive of the peer.
// It may be called from any goroutine, returns at once, and allocates nothing but the
// slots of all requests with the first one. What one goroutine posts is sent in the
// order posted. nil means that exactly one completion follows, or none if flags has
// Suppress and the send succeeds. An error means that nothing has happened. nil does not mean that
// the device has the send: it may wait in the endpoint's mailbox for the goroutine that hands posts
// over, and what the device then finds wrong is the completion's status.
//
// The array of segments is the caller's when PostSend returns, on every provider. A send without
// segments, of nil or of empty ones, is legal: it moves no bytes and consumes a receive. Every
// cookie is legal, 0 as well and one that is outstanding, except that the cookies with the highest
// bit are a [godat/runtime.Conn]'s own on its endpoint. More bytes than MaxMessageSize are
// LENGTH_ERROR.
//
// In DISCONNECTED a send is accepted and completes as FLUSHED, as DAT's page says. An endpoint with
// [Config.EndIsLast], so that of every [godat/runtime.Conn], refuses it with
// INVALID_STATE/EP_DISCONNECTED. In every other state but CONNECTED a send is INVALID_STATE.
//
// The segments are the program's again when the completion says so. The peer's
// answer does not say so: it can come before the completion of the send that it
// answers. A success says nothing more, on every provider: over TCP (iwarp) the
// peer need not have looked at the message yet.
//
// The segments need LocalRead. Legal flags: Suppress, SolicitedWait, BarrierFence,
// and Unsignalled if the endpoint's attributes have it. Suppress is what verbs call
// an unsignaled request: a success has no event. A request with Unsignalled does
// have an event, which takes a place in the dispatcher until the program takes it;
// but the event by itself wakes no waiter.
// It answers to dat_ep_post_send.
func (e *Endpoint) PostSend(cookie uint64, flags hw.Flags, segments ...mem.Segment) error {
	return line.PostPlain(e.mailbox(), hw.OpSend, cookie, flags, segments, nil, nil)
}

// PostRDMAWrite writes the segments to the peer's memory, beginning at remote's
// address; remote is at least as long, or the post is LENGTH_ERROR. SolicitedWait is not legal. See
// PostSend for the rest.
//
// A success gives the segments back. It does not say that the bytes are in the
// peer's memory: over TCP (iwarp, and soft-iWARP by way of ibv) it comes when TCP
// has taken the bytes, and a peer that then refuses the write breaks the
// connection. Two things prove on every provider that the bytes are there: the
// peer's answer to a message that was posted after the write, and the success of a
// read that was posted after it.
// It answers to dat_ep_post_rdma_write.
func (e *Endpoint) PostRDMAWrite(cookie uint64, flags hw.Flags, remote mem.RemoteSegment, segments ...mem.Segment) error {
	return line.PostPlain(e.mailbox(), hw.OpWrite, cookie, flags, segments, &remote, nil)
}

// PostRDMARead reads remote into the segments, which need LocalWrite and are at
// least as long, or the post is LENGTH_ERROR; a read moves as many bytes as remote has. Reads beyond
// what the two ends agreed on ([Endpoint.Reads]) are accepted and wait their turn, and requests
// behind them may wait with them. A success says that the bytes are in the segments, and that the
// writes posted before the read are in the peer's memory. SolicitedWait is not
// legal. See PostSend for the rest.
// It answers to dat_ep_post_rdma_read.
func (e *Endpoint) PostRDMARead(cookie uint64, flags hw.Flags, remote mem.RemoteSegment, segments ...mem.Segment) error {
	return line.PostPlain(e.mailbox(), hw.OpRead, cookie, flags, segments, &remote, nil)
}

// PostRecv posts a buffer for one message of the peer; messages fill buffers in the
// order posted, and segments in the order given. The segments need LocalWrite; Unsignalled is
// legal if the endpoint's attributes have it. A message longer than the segments completes the
// receive with LOCAL_LENGTH, and the connection breaks; after any status but SUCCESS the content of
// the segments is undefined.
//
// It is legal in every state, also before the endpoint is connected; in DISCONNECTED as
// PostSend. It is refused on an endpoint with a shared receive queue (INVALID_STATE/SRQ_IN_USE), and
// on one that a request brought and that has no zone yet (INVALID_STATE/EP_PZ).
//
// A peer that is told to send once PostRecv has returned finds the buffer. On a
// device without hw.Attr.NotReadyWait, or with Strict, where a send may not wait for
// its receive, PostRecv therefore waits until the receive is with the device, if
// another call on the endpoint is under way that must hand it over. That wait is as long as the
// other call's calls of the device, in an upcall too. On other devices it returns at once.
// It answers to dat_ep_post_recv.
func (e *Endpoint) PostRecv(cookie uint64, flags hw.Flags, segments ...mem.Segment) error {
	return line.PostPlain(e.mailbox(), hw.OpRecv, cookie, flags, segments, nil, nil)
}
