package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/internal/release"
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
	return postPlain(e, hw.OpSend, cookie, flags, segments, nil, nil)
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
	return postPlain(e, hw.OpWrite, cookie, flags, segments, &remote, nil)
}

// PostRDMARead reads remote into the segments, which need LocalWrite and are at
// least as long, or the post is LENGTH_ERROR; a read moves as many bytes as remote has. Reads beyond
// what the two ends agreed on ([Endpoint.Reads]) are accepted and wait their turn, and requests
// behind them may wait with them. A success says that the bytes are in the segments, and that the
// writes posted before the read are in the peer's memory. SolicitedWait is not
// legal. See PostSend for the rest.
// It answers to dat_ep_post_rdma_read.
func (e *Endpoint) PostRDMARead(cookie uint64, flags hw.Flags, remote mem.RemoteSegment, segments ...mem.Segment) error {
	return postPlain(e, hw.OpRead, cookie, flags, segments, &remote, nil)
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
	return postPlain(e, hw.OpRecv, cookie, flags, segments, nil, nil)
}

// work is a DTO on its way into a slot, without its one-shot. It stays on the
// poster's stack, and what it points to may, too.
type work struct {
	op     hw.Op
	flags  hw.Flags
	cookie uint64
	segs   []mem.Segment
	remote mem.RemoteSegment
	ext    *extra // nil for the plain operations
	own    bool   // a connection's, whose cookie is reserved
}

// post checks and admits one operation, then publishes it or hands it to the
// provider. shot, unless it is nil, takes the completion.
func post(e *Endpoint, w *work, shot *evd.OneShot) error {
	if e == nil {
		return nilEndpoint(w.op)
	}
	b := &e.box
	q := &b.requests
	if w.op == hw.OpRecv {
		q = &b.recvs
	}
	ticket, mine, err := b.admitOne(q, w, shot)
	if err != nil {
		return err
	}
	b.submit(q, ticket, 1, mine)
	return nil
}

// single reports whether there is exactly one segment with something in it.
func (w *work) single() bool { return len(w.segs) == 1 && w.segs[0].Len != 0 }

// admitOne checks one operation, reserves room for its event, and gives it a ticket
// and a filled slot. If Modify has replaced the rules meanwhile, it checks a
// refused operation again: the dispatcher of the old rules is no longer the
// endpoint's, and may be closed.
func (b *mailbox) admitOne(q *queue, w *work, shot *evd.OneShot) (ticket uint32, mine bool, err error) {
	for {
		r := q.rules.Load()
		lkey, err := b.check(r, w)
		if err != nil {
			return 0, false, err
		}
		ticket, mine, err = b.admit(q, r, w, shot, lkey)
		if err == nil || q.rules.Load() == r {
			return ticket, mine, err
		}
	}
}

// admit is admitOne after the check. lkey is the key of a single segment.
func (b *mailbox) admit(q *queue, r *rules, w *work, shot *evd.OneShot, lkey uint32) (ticket uint32, mine bool, err error) {
	to, err := b.e.adapter.destination(shot, r.evd, w.cookie)
	switch {
	case err != nil:
		return 0, false, wrap(callOf(w.op), err)
	case to != nil && shot == nil && !to.Reserve(1):
		return 0, false, noEventRoom(b.e, callOf(w.op), to)
	}
	ticket, ok, mine := b.claimTicket(q)
	if !ok {
		if to != nil {
			to.Release(1)
		}
		return 0, false, b.whyNoTicket(callOf(w.op))
	}
	q.fill(ticket, w, to, lkey)
	return ticket, mine, nil
}

// noEventRoom returns why a post found no room for its event. A dispatcher that was
// aborted with its adapter has no room either; its endpoint was closed before, and
// the error says so.
func noEventRoom(e *Endpoint, op string, to *delivery.Queue) error {
	if e.State() == closed {
		return stateError(op, closed)
	}
	return fullQueue(e, op, to)
}

// fill writes the slot of a ticket; lkey is the key of a single segment.
func (q *queue) fill(ticket uint32, w *work, to *delivery.Queue, lkey uint32) {
	i := ticket & q.mask
	s := &q.slots[i]
	s.op = w.op
	s.nseg = uint8(len(w.segs))
	s.flags = w.flags
	release.Relaxed(&s.cookie, w.cookie)
	s.to = to
	if q.rules.Load().timed && w.flags&hw.Suppress == 0 {
		s.posted = clock()
	}
	if w.single() {
		sge := &s.sge[0]
		sge.Addr, sge.Len, sge.LKey = w.segs[0].Addr, w.segs[0].Len, lkey
	} else {
		w.translate(q.segments(ticket, len(w.segs)), q.rules.Load().zone)
	}
	if operations[w.op&31].special {
		s.addr, s.rkey = w.remote.Addr, w.remote.Context
		if w.op == hw.OpRead {
			w.trim(q.segments(ticket, len(w.segs)))
		}
	}
	if w.ext != nil {
		s.imm = w.ext.imm
		if operations[w.op&31].atomic {
			q.operands.made(len(q.slots))[i] = w.ext.operands
		}
	}
}

// translate writes a slot's segments. They were checked; a region that was freed
// since gives a key that every provider refuses, with LOCAL_PROTECTION.
func (w *work) translate(sges []hw.SGE, zone *memory.Zone) {
	for i := range w.segs {
		seg := &w.segs[i]
		sges[i] = hw.SGE{}
		if seg.Len != 0 {
			lkey, _ := zone.LKey((*memory.Segment)(seg), hw.NoPrivileges)
			sges[i] = hw.SGE{Addr: seg.Addr, Len: seg.Len, LKey: lkey}
		}
	}
}

// sgesOf writes the segments to sges, as [memory.Zone.Resolve] takes them.
func sgesOf(sges []hw.SGE, segs []mem.Segment) []hw.SGE {
	for i, s := range segs {
		sges[i] = hw.SGE{Addr: s.Addr, Len: s.Len, LKey: s.Context}
	}
	return sges[:len(segs)]
}

// trim cuts the sink of an RDMA read to the length of its source.
func (w *work) trim(sges []hw.SGE) {
	left := w.remote.Len
	for i := range sges {
		sges[i].Len = min(sges[i].Len, left)
		left -= sges[i].Len
	}
}
