package rpc

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

const slotMask = 1<<16 - 1

// Request is a call that came to a server. It is the program's until Reply or Fail, or the return of
// its [Handler]: each of its methods that does something is INVALID_STATE after that, also when the
// client has made further calls since, Payload is nil, and Context has ended with that error as its
// cause. Until then the payload stays as it is, also when the connection or the server has ended; the
// errors of Read, Write and Reply match [ErrEnded] then. Any goroutine may call its methods.
type Request struct {
	// Immutable once the reader has handed it over, but for the payload and the metadata, which end with the
	// request, under mu.
	from *served
	slot *slot
	message
	arrived time.Time
	timed   bool // it is measured

	// Under Server.mu.
	next, prev *Request  // in the queue of its connection
	waits      bool      // it is there
	began      time.Time // when the program got it

	mu       sync.Mutex
	buffer   *mem.Buffer // has the payload; nil once done
	written  uint32      // how far into the sink
	done     bool        // the program has answered it, or may not any more
	answered bool        // its caller has left and has been told so, before the program's answer
	canceled bool        // by its caller
	gone     bool        // its connection has ended
	lost     bool        // and its caller waited then
	moves    int         // pieces under way

	transfers int           // of the program's that are under way, between pieces, too
	still     chan struct{} // closed when there are none; nil before an answer waits for that
	limit
	cancels context.CancelFunc
	ctx     context.Context // nil before the first call of Context
	given   context.Context // by SetContext; nil is ctx
}

// slot is a place for a call of a client.
type slot struct {
	turn uint32                  // of the last CALL; the reader's
	now  atomic.Pointer[Request] // from the CALL to its answer
	kept atomic.Pointer[kept]    // from the answer to its FETCH
}

// begin makes the request of a call that came; nil if its slot has one already, or the turn is not
// the next.
func (p *served) begin(slot *slot, b *mem.Buffer, m message) *Request {
	if slot.now.Load() != nil || m.call>>16 != (slot.turn+1)&slotMask {
		return nil
	}
	if len(p.fresh) == 0 {
		p.fresh = make([]Request, min(len(p.slots), 16))
	}
	r := &p.fresh[0] // never used again: a program may keep it
	p.fresh = p.fresh[1:]
	r.from, r.slot, r.message, r.buffer = p, slot, m, b
	r.arrived, r.timed = time.Now(), p.server.ia.MeasuresLatency()
	slot.turn = m.call >> 16
	slot.now.Store(r)
	return r
}

// made reports whether the request comes of a server.
func (r *Request) made() bool { return r != nil && r.from != nil }

func noRequest(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.NoSubtype, "no request: Serve gives its handlers one, and RequestOf has one for each event of Requests but the last")
}

// Method is the number that the caller chose.
func (r *Request) Method() uint16 {
	if r == nil {
		return 0
	}
	return r.header.code
}

// Payload is what the caller sent inside the message; nil once the request is answered.
func (r *Request) Payload() []byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return nil
	}
	return r.payload
}

// String says which call it is, for errors and logs: its method and number, the client's
// address, and the connection's [godat/runtime.Conn.ID].
func (r *Request) String() string {
	if !r.made() {
		return "Request(nil)"
	}
	return r.from.name(r.header)
}

// Conn is the connection on which the request came. The program neither receives from it nor
// sends to it.
func (r *Request) Conn() *dat.Conn {
	if !r.made() {
		return nil
	}
	return r.from.link.conn
}

// SourceLen is how many bytes the caller has for [Request.Read].
func (r *Request) SourceLen() int {
	if r == nil {
		return 0
	}
	return fitting(r.source.Len)
}

// SinkLen is how many bytes the caller has room for by [Request.Write].
func (r *Request) SinkLen() int {
	if r == nil {
		return 0
	}
	return fitting(r.sink.Len)
}

// fitting is a length that the peer has told, or what an int holds where it has 32 bits.
func fitting(n uint32) int { return int(min(uint64(n), math.MaxInt)) }

// Context is canceled when the caller does not wait any more: at the call's deadline, when its
// context ends, when the connection ends, and by Reply and Fail. A handler that has waited, for a
// lock or a disk, looks at it before it goes on with work that nobody needs any more. SetContext
// gives it values.
func (r *Request) Context() context.Context {
	const op = "rpc.Request.Context"
	if !r.made() {
		return overContext(noRequest(op))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return overContext(r.misused(op))
	}
	if r.ctx == nil {
		if r.header.timeout != 0 {
			r.ctx, r.cancels = context.WithDeadline(context.Background(), r.deadline())
		} else {
			r.ctx, r.cancels = context.WithCancel(context.Background())
		}
		if r.canceled || r.gone {
			r.cancels()
		}
	}
	if r.given != nil {
		return r.given
	}
	return r.ctx
}

// overContext is a context that has ended with a cause.
func overContext(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}

// SetContext makes Context return another context, which the program has derived from that of Context: one
// with values for the handler, or with an earlier end. Reads and Writes that have not begun at its end do
// not begin. Calls that the handler makes with the request's metadata have a context of
//
//	r.SetContext(rpc.WithMetadata(r.Context(), r.Metadata()))
//
// A nil context is that of before. Of a request that has been answered it does nothing.
func (r *Request) SetContext(ctx context.Context) {
	if !r.made() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.given = ctx
	}
}

// misused is the error of a method, for a request that is not the program's any more.
func (r *Request) misused(op string) error {
	return hw.Errorf(op, hw.InvalidState, hw.NoSubtype,
		"the request was answered, so it is the program's no more: %s; a handler of Serve answers by its return alone", r)
}

// deadline is the call's, if its header has a time-out.
func (r *Request) deadline() time.Time {
	return r.arrived.Add(time.Duration(r.header.timeout) * time.Millisecond)
}

// Reply answers the call with a payload, which may be a part of the request's own. A payload that is
// longer than the caller takes inside a message makes the call fail with CodeTooLong, and is LENGTH_ERROR
// here, unless the caller fetches it: [Client.CallJSON] does, up to 64 MiB. When the connection has ended the error matches [ErrEnded]. Reply waits for a
// Read or Write of another goroutine that is under way. Of a request that has been answered it is
// INVALID_STATE, and changes nothing.
func (r *Request) Reply(payload []byte) error { return r.answer("Reply", 0, payload) }

// Fail answers the call with a failure, which is the caller's [Error]. Codes of the
// program's begin at [CodeUser]. In place of 0, and of CodeDraining and CodeBusy, by which a
// server says that it has not begun a call, the caller gets CodeFailed. The text is cut behind
// 1024 bytes, or as many as an answer may have.
func (r *Request) Fail(code uint16, text string) error {
	if !r.made() {
		return noRequest("rpc.Request.Fail")
	}
	switch code {
	case 0, CodeDraining, CodeBusy:
		code = CodeFailed
	}
	return r.answer("Fail", code, r.fittingText(text))
}

func (r *Request) fittingText(text string) []byte {
	return []byte(text[:min(len(text), mostText, r.most())])
}

func (r *Request) most() int { return min(r.from.answer, r.from.server.cfg.Message) }

// answer is the program's answer, which ends the request.
func (r *Request) answer(method string, code uint16, payload []byte) (err error) {
	if !r.made() {
		return noRequest("rpc.Request." + method)
	}
	r.mu.Lock()
	r.rest()
	if r.done {
		r.mu.Unlock()
		return r.misused("rpc.Request." + method)
	}
	failed := code
	if len(payload) > r.most() {
		if length := r.setAside(payload); length != nil {
			code, payload = codeLater, length
		} else {
			err = hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes; the caller takes %d", len(payload), r.most())
			code, payload = CodeTooLong, r.fittingText("the answer is too long")
			failed = code
		}
	}
	told, over, gone, lost := r.answered, r.over(), r.gone, r.lost
	b := r.finish(code, payload)
	r.mu.Unlock()
	s := r.from.server
	if r.timed {
		s.counts(r, failed).took(time.Since(r.arrived))
	}
	if failed != 0 || over != nil {
		s.noteFailure(r, failed, string(payload[:min(len(payload), mostSaid)]), over, gone, lost)
	}
	s.finish(r, failed, over == nil) // before the client hears, and may call again
	err = cmp.Or(err, r.respond(b, told))
	s.count(-1)
	return r.from.of(r.header, method, err)
}

// respond sends the answer, unless its caller has left and has been told so.
func (r *Request) respond(b *mem.Buffer, told bool) error {
	if !told {
		return r.send(b)
	}
	r.from.link.conn.Release(b)
	r.from.left.Add(-1)
	return nil
}

// rest waits until no transfer is under way. The caller holds mu.
func (r *Request) rest() {
	for r.transfers > 0 && !r.done {
		if r.still == nil {
			r.still = make(chan struct{})
		}
		still := r.still
		r.mu.Unlock()
		<-still
		r.mu.Lock()
	}
}

// finish takes the request from the program, and makes its message the answer. The caller holds mu.
func (r *Request) finish(code uint16, payload []byte) *mem.Buffer {
	b := r.buffer
	if r.done = true; !r.answered {
		r.encode(b, code, payload)
	}
	r.stop()
	r.ctx, r.given, r.cancels, r.payload, r.metadata, r.buffer = nil, nil, nil, nil, nil, nil
	return b
}

// encode makes the message an answer.
func (r *Request) encode(b *mem.Buffer, code uint16, payload []byte) {
	putAnswer(b, header{code: code, call: r.header.call, written: r.written}, payload)
}

// send sends the answer. Its slot is free before the client hears, and may call again.
func (r *Request) send(b *mem.Buffer) error {
	r.slot.now.Store(nil)
	return r.from.link.send(b)
}

// refuse answers a request that the program has not had.
func (r *Request) refuse(code uint16, text string) error {
	r.mu.Lock()
	told := r.answered
	b := r.finish(code, r.fittingText(text))
	r.mu.Unlock()
	return r.respond(b, told)
}

// discard ends a request that the program has not had, and whose connection has ended.
func (r *Request) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from.link.conn.Release(r.finish(0, nil))
}

// cancel is called for a CANCEL. A request that no handler has begun is not begun any more. The caller
// of one with memory waits until that is its own again, so it is told as soon as nothing moves.
func (r *Request) cancel() {
	if r.from.server.withdraw(r) {
		_ = r.refuse(CodeBusy, callerLeft) // fails when the connection has ended
		r.from.server.count(-1)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done || r.canceled {
		return
	}
	r.canceled = true
	r.stop()
	if r.moves > 0 {
		r.leave()
		r.boundByEnd()
	}
	r.release()
}

// release tells a caller that has left that its memory is its own again. A client has as many requests
// that handlers go on with behind that as it may have calls. The caller holds mu.
func (r *Request) release() {
	if !r.canceled || r.answered || r.done || r.gone || r.moves > 0 || r.source.Len == 0 && r.sink.Len == 0 {
		return
	}
	p := r.from
	if p.left.Add(1) > int32(len(p.slots)) {
		p.left.Add(-1)
		return
	}
	b := p.link.conn.Buffer()
	if b == nil {
		p.left.Add(-1)
		return
	}
	r.answered = true
	r.encode(b, CodeFailed, r.fittingText("its caller has left"))
	_ = r.send(b) // fails when the connection has ended
}

func (r *Request) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.gone, r.lost = true, r.left() == nil
		r.stop()
	}
}

func (r *Request) stop() {
	if r.cancels != nil {
		r.cancels()
	}
}
