package model

// operation is what DAT says of one kind of post.
type operation struct {
	flags  int // the legal ones; UNSIGNALLED only if the endpoint has it
	local  int // the privilege that the local segments need
	remote int // the privilege that the remote segment needs; 0 if there is none
	number int // the number of the completion's event
	code   int // the event's operation, from DAT_DTOS
}

var operations = map[string]operation{
	"recv":      {unsignalled, localWrite, 0, dtoCompletion, 3},
	"send":      {suppress | solicited | unsignalled | fence, localRead, 0, dtoCompletion, 0},
	"send_inv":  {suppress | solicited | unsignalled | fence, localRead, 0, dtoCompletion, 0},
	"read_rmr":  {suppress | unsignalled | fence, 0, remoteRead, dtoCompletion, 2},
	"write":     {suppress | unsignalled | fence, localRead, remoteWrite, dtoCompletion, 1},
	"read":      {suppress | unsignalled | fence, localWrite, remoteRead, dtoCompletion, 2},
	"write_imm": {suppress | solicited | unsignalled | fence, localRead, remoteWrite, ibDTOEvent, 8},
	"fetch_add": {suppress | unsignalled | fence, localWrite, remoteAtomic, ibDTOEvent, 10},
	"cmp_swap":  {suppress | unsignalled | fence, localWrite, remoteAtomic, ibDTOEvent, 11},
	"bind":      {suppress | unsignalled | fence, 0, 0, bindCompletion, 5},
}

const recvImmediate = 9 // the operation of a receive taken by a write with immediate data

// workOf returns the operation that a command posts.
func workOf(c Command) *work {
	x := &work{
		op: c.Op, cookie: c.Int("cookie"), flags: c.Bits("flags", Flags), segs: c.Segments("local"),
		imm: c.Int("imm"), add: uint64(c.Int("add")), cmp: uint64(c.Int("cmp")),
	}
	if remote := c.Segments("remote"); len(remote) > 0 {
		x.remote = remote[0]
	}
	if x.op == "read_rmr" && len(x.segs) > 0 {
		x.sink, x.segs = x.segs[0], nil
	}
	return x
}

// refusals adds what a post of x is refused for; iov is how many segments it may
// have.
func (w *World) refusals(v *verdict, p *endpoint, x *work, iov, allowed int) {
	o := operations[x.op]
	legal := o.flags &^ (unsignalled &^ allowed)
	v.when(x.flags&^legal != 0, invalidParameter)
	v.when(len(x.segs) > iov, invalidParameter)
	n := w.checkSegments(v, x.segs, p.zone, o.local)
	switch x.op {
	case "send", "send_inv":
		v.when(n > p.maxMessage, lengthError)
	case "read_rmr":
		v.when(x.sink.Len < x.remote.Len || x.remote.Len > p.maxRDMA, lengthError)
		v.when(iov == 0, invalidParameter)
	case "write", "write_imm":
		v.when(n > x.remote.Len || n > p.maxRDMA, lengthError)
	case "read":
		v.when(n < x.remote.Len || x.remote.Len > p.maxRDMA, lengthError)
	case "fetch_add", "cmp_swap":
		v.when(n != 8 || x.remote.Len != 8, lengthError)
	}
}

// postRecv judges a post of a receive. In DISCONNECTED it is flushed at once.
func (w *World) postRecv(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	x := workOf(c)
	if p != nil {
		w.refusals(&v, p, x, p.recvIOV, p.recvFlags)
		v.when(len(p.recvs) >= p.recvDepth, insufficientResources)
		v.when(p.srq != nil, invalidState|subSRQInUse)
		v.when(p.zone == nil, invalidState|subPZ)
		w.room(&v, p.recv, 1)
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	p.receives++
	x.to = p.recv
	p.recvs = append(p.recvs, x)
	if p.recv != nil {
		p.recv.awaited++
	}
	switch {
	case p.state == isDisconnected:
		w.flush(p)
	case p.peer != nil:
		w.pump(p.peer)
	}
	return nil
}

// postRequest judges a post of a request, and executes what can be executed.
func (w *World) postRequest(c Command, r Result) error {
	p := w.ep(c.On)
	v := p.usable()
	x := workOf(c)
	extended := operations[x.op].number == ibDTOEvent
	if p != nil {
		w.refusals(&v, p, x, p.segments(x.op), p.reqFlags)
		v.when(extended && !w.limits.Extended, modelNotSupported)
		w.refuseRequest(&v, p)
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	w.posted(p, x)
	return nil
}

// segments is how many local segments a request may have.
func (p *endpoint) segments(op string) int {
	switch op {
	case "read", "read_rmr":
		return p.readIOV
	case "write", "write_imm":
		return p.writeIOV
	}
	return p.reqIOV
}

// refuseRequest adds what every request is refused for.
func (w *World) refuseRequest(v *verdict, p *endpoint) {
	if p.state != isConnected && p.state != isDisconnected {
		v.when(true, stateCodes[p.state])
	}
	v.when(len(p.reqs) >= p.reqDepth, insufficientResources)
	v.perhaps(len(p.reqs)+p.unsure() >= p.reqDepth, insufficientResources)
	w.room(v, p.request, 1)
}

// posted queues a request.
func (w *World) posted(p *endpoint, x *work) {
	p.requests++
	x.to = p.request
	p.reqs = append(p.reqs, x)
	if p.request != nil {
		p.request.awaited++
	}
	if p.state == isDisconnected {
		w.flush(p)
	} else {
		w.pump(p)
	}
}

// received completes the first receive.
func (w *World) received(p *endpoint, status, length int, by *work) {
	x := p.recvs[0]
	p.recvs = p.recvs[1:]
	e := Event{Number: dtoCompletion, Source: p.name, Cookie: x.cookie, Status: status, Op: 3}
	silent := false
	if status == 0 {
		silent = x.flags&unsignalled != 0 || p.recvFlags&solicited != 0 && by.flags&solicited == 0
		e.Length = length
		if by.flags&solicited != 0 {
			e.Flags |= Solicited
		}
		if by.op == "send_inv" {
			e.Op, e.Imm = recvInvalidate, by.imm
			e.Flags |= Invalidated
		}
		if by.op == "write_imm" {
			e.Number, e.Op, e.Imm = ibDTOEvent, recvImmediate, by.imm
			e.Flags |= HasImm
		}
	}
	w.complete(x, queued{want: e, silent: silent, stream: "recv " + p.name, of: p.name})
}

// requested completes the first request. After a suppressed success nobody can tell
// whether the request's slot is free; any other completion shows that all requests
// before it are done.
func (w *World) requested(p *endpoint, status, length int, anyError bool) {
	x := p.reqs[0]
	p.reqs = p.reqs[1:]
	x.settle()
	if status == 0 && x.flags&suppress != 0 {
		p.suppressed = append(p.suppressed, x)
		x.drop()
		return
	}
	p.suppressed = nil
	o := operations[x.op]
	e := Event{Number: o.number, Source: p.name, Cookie: x.cookie, Status: status, Op: o.code}
	if status == 0 {
		e.Length = length
	}
	if x.bind != nil {
		e.Private = x.bind.window.name
	}
	silent := status == 0 && x.flags&unsignalled != 0
	w.complete(x, queued{want: e, silent: silent, any: anyError, stream: "request " + p.name, of: p.name})
}

// flush completes everything that is posted with FLUSHED.
func (w *World) flush(p *endpoint) {
	for len(p.recvs) > 0 {
		w.blur(p.recvs[0].segs)
		w.received(p, errFlushed, 0, nil)
	}
	for len(p.reqs) > 0 {
		w.requested(p, errFlushed, 0, false)
	}
	p.stalled = 0
	p.suppressed = nil
}
