package model

import "slices"

// Flags are the completion flags by name.
var Flags = map[string]int{"SUPPRESS": 0x01, "SOLICITED": 0x02, "UNSIGNALLED": 0x04, "FENCE": 0x08}

const (
	suppress    = 0x01
	solicited   = 0x02
	unsignalled = 0x04
	fence       = 0x08
)

// operation is what DAT says of one kind of post.
type operation struct {
	kind   int // receives, sends and so on
	legal  int // the legal flags; UNSIGNALLED only if the endpoint has it
	local  int // the privilege that the local segments need
	remote int // the privilege that the remote segment needs; 0 if there is none
	number int // the number of the completion's event
	code   int // the event's operation, from DAT_DTOS
}

// Kinds of operations.
const (
	receives = iota
	sends
	writes
	reads
	atomics
	binds
)

var operations = map[string]operation{
	"recv":      {receives, unsignalled, localWrite, 0, dtoCompletion, 3},
	"send":      {sends, suppress | solicited | unsignalled | fence, localRead, 0, dtoCompletion, 0},
	"send_inv":  {sends, suppress | solicited | unsignalled | fence, localRead, 0, dtoCompletion, 0},
	"write":     {writes, suppress | unsignalled | fence, localRead, remoteWrite, dtoCompletion, 1},
	"write_imm": {writes, suppress | solicited | unsignalled | fence, localRead, remoteWrite, ibDTOEvent, 8},
	"read":      {reads, suppress | unsignalled | fence, localWrite, remoteRead, dtoCompletion, 2},
	"read_rmr":  {reads, suppress | unsignalled | fence, 0, remoteRead, dtoCompletion, 2},
	"fetch_add": {atomics, suppress | unsignalled | fence, localWrite, remoteAtomic, ibDTOEvent, 10},
	"cmp_swap":  {atomics, suppress | unsignalled | fence, localWrite, remoteAtomic, ibDTOEvent, 11},
	"bind":      {binds, suppress | unsignalled | fence, 0, 0, bindCompletion, 5},
}

// Operations of a receive's event.
const (
	recvInvalidate = 4 // a send that invalidates took the receive
	recvImmediate  = 9 // a write with immediate data took it
)

// work is a posted operation.
type work struct {
	operation
	op            string
	to            *evd  // the dispatcher of its completion
	shot          *shot // the one-shot of its completion, if any
	cookie, flags int
	segs          []Segment
	target        Segment // the remote one
	sink          Segment // of a read into a window
	imm           int
	add, cmp      uint64
	bind          *binding // of a bind
}

// workOf returns the operation that a command posts.
func workOf(c Command) *work {
	x := &work{
		operation: operations[c.Op], op: c.Op, cookie: c.Int("cookie"), flags: c.Bits("flags", Flags), segs: c.Segments("local"),
		imm: c.Int("imm"), add: uint64(c.Int("add")), cmp: uint64(c.Int("cmp")),
	}
	if remote := c.Segments("remote"); len(remote) > 0 {
		x.target = remote[0]
	}
	if x.op == "read_rmr" && len(x.segs) > 0 {
		x.sink, x.segs = x.segs[0], nil
	}
	return x
}

// segments is how many local segments an operation may have.
func (p *params) segments(o operation) int {
	switch o.kind {
	case receives:
		return p.recvIOV
	case reads:
		return p.readIOV
	case writes:
		return p.writeIOV
	}
	return p.reqIOV
}

// evdOf is the dispatcher that gets the completions of an operation.
func (p *params) evdOf(o operation) *evd {
	if o.kind == receives {
		return p.recv
	}
	return p.req
}

// refuse adds everything that a post of x is refused for, but for the room of its
// event; so many operations of the same batch come before it.
func (p *endpoint) refuse(c *call, x *work, before int) {
	allowed, posted, depth := p.reqFlags, len(p.reqs)+before, p.reqDepth
	if x.kind == receives {
		allowed, posted, depth = p.recvFlags, len(p.recvs)+before, p.recvDepth
		c.refuse(p.srq != nil, invalidState|subSRQInUse)
		c.refuse(p.zone == nil, invalidState|subPZ)
	} else {
		c.refuseUnless(p, isConnected, isDisconnected)
		c.mayRefuse(posted+p.uncertain() >= depth, insufficientResources)
	}
	c.refuse(posted >= depth, insufficientResources)
	c.refuse(x.flags&^x.flagsAt(allowed) != 0, invalidParameter)
	c.refuse(len(x.segs) > p.segments(x.operation), invalidParameter)
	p.refuseLengths(c, x, p.w.memory.refuseSegments(c, x.segs, p.zone, x.local))
}

// flagsAt returns the flags that a post may have at an endpoint with these completion
// flags.
func (o operation) flagsAt(endpoint int) int { return o.legal &^ (unsignalled &^ endpoint) }

// refuseLengths adds what a post of n local bytes is refused for because of its
// lengths.
func (p *endpoint) refuseLengths(c *call, x *work, n int) {
	switch x.kind {
	case sends:
		c.refuse(n > p.maxMessage, lengthError)
	case writes:
		c.refuse(n > x.target.Len || n > p.maxRDMA, lengthError)
	case reads:
		if x.op == "read_rmr" {
			n = x.sink.Len
			c.refuse(p.readIOV == 0, invalidParameter)
		}
		c.refuse(n < x.target.Len || x.target.Len > p.maxRDMA, lengthError)
	case atomics:
		c.refuse(n != 8 || x.target.Len != 8, lengthError)
	}
}

// post judges a post of one operation.
func (p *endpoint) post(c *call) {
	x := workOf(c.Command)
	p.refuse(c, x, 0)
	p.evdOf(x.operation).refuse(c, 1)
	if c.succeeded() {
		p.take(x)
	}
}

// postBatch judges a post of several operations, which are taken in order up to the
// first that is refused. The operations are arguments, named by their index. All
// that are taken are queued before the first is executed.
//
//	batch p0 0=send;cookie=3;local=m0:0+8 1=write;cookie=4;shot=o1;remote=m1:0+0
func (w *World) postBatch(c *call) {
	p, ops, took := w.eps.named(c.On), c.Batch(), c.Values["n"]
	if took < 0 || took > len(ops) || (took == len(ops)) != (c.Code == success) {
		c.failf("took %d of %d, and returned %v", took, len(ops), c.Code)
		return
	}
	var xs []*work
	needed := make(map[*evd]int)
	shots := make(map[*shot]bool)
	for i, op := range ops[:min(took+1, len(ops))] {
		x, of := workOf(op), &call{Command: op}
		if x.shot = w.shots.named(op.Text("shot")); x.shot != nil {
			of.refuse(!x.shot.idle() || shots[x.shot], invalidState)
			shots[x.shot] = true
		}
		if need(of, p) {
			p.refuse(of, x, i)
			if d := p.evdOf(x.operation); x.shot == nil {
				needed[d]++
				d.refuse(of, needed[d])
			}
		}
		if i == took { // its code is that of the batch
			of.Code, c.must, c.may = c.Code, of.must, of.may
		} else {
			xs = append(xs, x)
		}
		if of.end(); of.err != nil {
			c.failf("%s: %w", op, of.err)
			return
		}
	}
	if took > 0 {
		p.take(xs...)
	}
}

// take queues operations, and executes what can be executed.
func (p *endpoint) take(xs ...*work) {
	for _, x := range xs {
		if x.shot != nil {
			x.shot.armed = true
		} else {
			x.to = p.evdOf(x.operation)
		}
		if x.kind == receives {
			p.recvs = append(p.recvs, x)
			p.receives++
		} else {
			p.reqs = append(p.reqs, x)
			p.requests++
		}
	}
	switch {
	case p.state == isDisconnected:
		p.flush()
	case xs[0].kind != receives:
		p.execute()
	case p.peer != nil:
		p.peer.execute()
	}
}

// awaits counts the events that must still come from p to a dispatcher.
func (p *endpoint) awaits(d *evd) (n int) {
	for _, x := range slices.Concat(p.recvs, p.reqs) {
		n += number(x.to == d)
	}
	return n + p.connRoom*number(p.conn == d)
}

// complete delivers the completion of x to its one-shot or its dispatcher.
func (x *work) complete(q queued) {
	if s := x.shot; s != nil {
		s.armed, s.event = false, &q
		return
	}
	x.to.put(q)
}

// received completes the first receive; by is the request that took it.
func (p *endpoint) received(status, length int, by *work) {
	x := p.recvs[0]
	p.recvs = p.recvs[1:]
	e := Event{Number: x.number, Source: p.name, Cookie: x.cookie, Status: status, Op: x.code}
	silent := false
	if status == 0 {
		silent = x.flags&unsignalled != 0 || p.recvFlags&solicited != 0 && by.flags&solicited == 0
		e.Length = length
		if by.flags&solicited != 0 {
			e.Flags |= Solicited
		}
		switch by.op {
		case "send_inv":
			e.Op, e.Imm = recvInvalidate, by.imm
			e.Flags |= Invalidated
		case "write_imm":
			e.Number, e.Op, e.Imm = ibDTOEvent, recvImmediate, by.imm
			e.Flags |= HasImm
		}
	}
	x.complete(queued{want: e, silent: silent, stream: "recv " + p.name, of: p.name})
}

// requested completes the first request. After a suppressed success the request's
// slot may or may not be free; any other completion shows that all requests before
// it are done.
func (p *endpoint) requested(status, length int) {
	x := p.reqs[0]
	p.reqs = p.reqs[1:]
	if x.bind != nil {
		x.bind.completed()
	}
	if status == 0 && x.flags&suppress != 0 {
		p.suppressed = append(p.suppressed, x)
		if x.shot != nil {
			x.shot.armed = false
		}
		return
	}
	p.suppressed = nil
	e := Event{Number: x.number, Source: p.name, Cookie: x.cookie, Status: status, Op: x.code}
	if status == 0 {
		e.Length = length
	}
	if x.bind != nil {
		e.Private = x.bind.window.name
	}
	x.complete(queued{
		want: e, silent: status == 0 && x.flags&unsignalled != 0, any: status == errAny, stream: "request " + p.name, of: p.name,
	})
}

// flush completes everything that is posted with FLUSHED.
func (p *endpoint) flush() {
	for len(p.recvs) > 0 {
		p.w.memory.forget(p.recvs[0].segs)
		p.received(errFlushed, 0, nil)
	}
	for len(p.reqs) > 0 {
		p.requested(errFlushed, 0)
	}
	p.stalled = 0
	p.suppressed = nil
}
