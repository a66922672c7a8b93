package ep

import (
	"unsafe"

	"godat/internal/delivery"

	"godat/evd"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// DTO is one data transfer operation for PostBatch and PostRecvBatch. Neither call
// keeps the array of DTOs, so a program that must not allocate can use the same
// array for every batch.
type DTO struct {
	Op     hw.Op    // of a request; PostRecvBatch ignores it
	Flags  hw.Flags // completion flags
	Cookie uint64   // opaque; comes back in the event
	// Segments are the local memory, of the endpoint's zone. The array is copied;
	// the memory belongs to the operation until it completes.
	Segments []mem.Segment
	// Segment is the local memory if Segments is nil, so that one segment needs no
	// array. A Segment of length 0 is no memory at all.
	Segment mem.Segment
	// Remote is the peer's memory, for RDMA. A read reads all of it; a write
	// fills as much of it as the local segments hold.
	Remote mem.RemoteSegment
	// Immediate is the immediate data of OpWriteImm, and the peer's context that
	// OpSendInvalidate invalidates.
	Immediate uint32
	// Operand and Compare are those of atomics: see PostFetchAdd and
	// PostCompareSwap.
	Operand, Compare uint64
	// OneShot, if set, takes the completion in place of the dispatcher.
	OneShot *evd.OneShot

	own bool // a connection's, whose cookie is reserved
}

// PostBatch posts requests in order and returns how many it posted; err says why it
// did not post the next one. It costs less than one post each, because the endpoint
// steps once for up to 64 of them.
func (e *Endpoint) PostBatch(dtos []DTO) (n int, err error) {
	return postAll(e, hw.OpEnd, dtos)
}

// PostRecvBatch is PostBatch for receives.
func (e *Endpoint) PostRecvBatch(dtos []DTO) (n int, err error) {
	return postAll(e, hw.OpRecv, dtos)
}

// postAll posts receives, or with OpEnd requests, up to the first one with a cookie that is not the
// program's.
func postAll(e *Endpoint, op hw.Op, dtos []DTO) (n int, err error) {
	switch {
	case e == nil:
		return 0, nilEndpoint(op)
	case len(dtos) == 0:
		return 0, alive(callOf(op), e)
	}
	q := &e.box.requests
	if op == hw.OpRecv {
		q = &e.box.recvs
	}
	if !e.box.reserves {
		return e.box.postBatch(q, dtos)
	}
	free := 0
	for free < len(dtos) && (dtos[free].own || !e.box.refuses(dtos[free].Cookie)) {
		free++
	}
	if n, err = e.box.postBatch(q, dtos[:free]); err == nil && free < len(dtos) {
		err = reservedCookie(dtos[free].call(q), dtos[free].Cookie)
	}
	return n, err
}

// batchDTOs is the most operations admitted at a time.
const batchDTOs = scratchWRs

func (b *mailbox) postBatch(q *queue, dtos []DTO) (n int, err error) {
	if len(dtos) == 1 && (q == &b.recvs || dtos[0].Op <= hw.OpRead) {
		if err = b.postOne(q, &dtos[0]); err != nil {
			return 0, err
		}
		return 1, nil
	}
	for n < len(dtos) && err == nil {
		some := dtos[n:min(len(dtos), n+batchDTOs)]
		if b.postRun(q, some) {
			n += len(some)
			continue
		}
		var took int
		took, err = b.postSome(q, some)
		n += took
	}
	return n, err
}

// place is what an operation of a batch has reserved and looked up before it has a
// slot.
type place struct {
	to   *delivery.Queue
	lkey uint32
}

// batch is up to batchDTOs operations on their way into slots of one queue, checked
// against one set of rules. It stays on the poster's stack.
type batch struct {
	q      *queue
	r      *rules
	places [batchDTOs]place
}

// postSome admits up to batchDTOs operations at once. If Modify has replaced the
// rules meanwhile it may admit none and return no error; the caller then tries
// again.
func (b *mailbox) postSome(q *queue, dtos []DTO) (int, error) {
	var s batch // field by field: the compiler would build a literal elsewhere and copy it
	s.q, s.r = q, q.rules.Load()
	checked, err := s.check(dtos, b.State())
	k, fail := s.reserve(b, dtos[:checked])
	if k < checked {
		err = fail
	}
	if k == 0 {
		return 0, err
	}
	ticket, n, _, mine := b.claimTickets(q, uint32(k))
	for _, p := range s.places[n:k] {
		unreserve(p.to)
	}
	if int(n) < k {
		err = b.whyNoTicket(dtos[n].call(q))
	}
	if n == 0 {
		return 0, err
	}
	s.fill(ticket, dtos[:n])
	b.submit(q, ticket, n, mine)
	return int(n), err
}

// check checks operations up to the first that is refused.
func (s *batch) check(dtos []DTO, state State) (n int, err error) {
	var w work
	for i := range dtos {
		dtos[i].work(s.q, &w)
		w.segs = dtos[i].list()
		if s.places[i].lkey, err = s.r.check(&w, state); err != nil {
			return i, err
		}
	}
	return len(dtos), nil
}

// reserve reserves room for the events of operations, up to the first that finds
// none. A run of events for the same queue is reserved in one call. It stops
// without an error when Modify has given the queue another dispatcher meanwhile.
func (s *batch) reserve(b *mailbox, dtos []DTO) (int, error) {
	d := s.r.evd
	for i := 0; i < len(dtos); {
		to, err := b.e.adapter.destination(dtos[i].OneShot, d, dtos[i].Cookie)
		if err != nil {
			return i, wrap(dtos[i].call(s.q), err)
		}
		s.places[i].to = to
		n := 1
		if to != nil && dtos[i].OneShot == nil {
			for i+n < len(dtos) && dtos[i+n].OneShot == nil && wiring(d).For(dtos[i+n].Cookie) == to {
				s.places[i+n].to = to
				n++
			}
			if !to.Reserve(n) {
				if n == 1 || !to.Reserve(1) {
					if s.q.rules.Load() != s.r {
						return i, nil
					}
					return i, noEventRoom(b.e, dtos[i].call(s.q), to)
				}
				n = 1
			}
		}
		i += n
	}
	return len(dtos), nil
}

// fill writes the slots of the operations, from ticket on.
func (s *batch) fill(ticket uint32, dtos []DTO) {
	var w work
	var x extra
	for i := range dtos {
		dtos[i].work(s.q, &w)
		w.segs = dtos[i].list()
		w.ext = nil
		if operations[w.op&31].extended {
			x = extra{dtos[i].Immediate, operands{dtos[i].Operand, dtos[i].Compare}}
			w.ext = &x
		}
		s.q.fill(ticket, &w, s.places[i].to, s.places[i].lkey)
		ticket = (ticket + 1) & ticketMask
	}
}

var errForeignShot = &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandleEVDRequest, Text: "the one-shot's dispatcher is another adapter's"}

// destination returns the queue that takes the completion of an operation, given the
// dispatcher of its direction, and arms the operation's one-shot if it has one.
func (a *Adapter) destination(shot *evd.OneShot, to *evd.Dispatcher, cookie uint64) (*delivery.Queue, error) {
	switch {
	case shot != nil:
		if !shot.Wiring(door.Key{}).Serves(wiring(to), a.ia) {
			return nil, errForeignShot
		}
		return shot.Wiring(door.Key{}).Arm()
	case to == nil:
		return nil, nil
	}
	return wiring(to).For(cookie), nil
}

// list is the local memory. The caller stores the result into a work of its own: if
// list stored it through a pointer, escape analysis would move d to the heap.
func (d *DTO) list() []mem.Segment {
	if d.Segments == nil && d.Segment.Len != 0 {
		return unsafe.Slice(&d.Segment, 1)
	}
	return d.Segments
}

// single returns the only segment of d; nil if there are none or several.
func (d *DTO) single() *mem.Segment {
	switch {
	case d.Segments == nil:
		return &d.Segment
	case len(d.Segments) == 1:
		return &d.Segments[0]
	}
	return nil
}

// work puts into w what d asks of q, except its memory; describe in complete.go
// says why field by field.
func (d *DTO) work(q *queue, w *work) {
	w.op, w.flags, w.cookie = d.Op, d.Flags, d.Cookie
	w.remote.Addr, w.remote.Len, w.remote.Context = d.Remote.Addr, d.Remote.Len, d.Remote.Context
	if q.plain == hw.OpRecv {
		w.op = hw.OpRecv
	} else if mayBeRequests>>w.op&1 == 0 {
		w.op = hw.OpEnd
	}
}

// mayBeRequests are the operations with a number below 32 that PostBatch does not
// refuse by number alone.
const mayBeRequests = ^uint32(1<<hw.OpRecv | 1<<hw.OpBind | 1<<hw.OpReadToRMR)

// call names the call that posts d to q, for errors.
func (d *DTO) call(q *queue) string {
	var w work
	d.work(q, &w)
	return callOf(w.op)
}
