package rpc

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

const slotMask = 1<<16 - 1

// Request is a call that came to a server. One goroutine at a time calls its methods. Reply or
// Fail ends it, also if it returns an error: after that, the program must not use the request or the
// bytes of Payload. Until then it may, also when the connection or the server has ended: the payload
// stays as it is, and the errors of Read, Write and Reply match [ErrEnded].
type Request struct {
	from *served // immutable

	// Of the reader before it hands the request over, and then of its holder.
	message // of the caller's
	buffer  *dat.Buffer
	arrived time.Time
	written uint32 // how far into the sink
	counted bool   // by the server
	timed   bool   // it is measured

	number atomic.Uint64 // among the server's requests, in the order in which the program takes them; the server's reader writes it

	mu       sync.Mutex
	open     bool // from the CALL to its answer
	turn     uint32
	canceled bool               // by its caller
	gone     bool               // its connection has ended
	moves    bool               // a transfer is under way
	limit    *time.Timer        // breaks the connection when a transfer takes too long; nil before the first
	cancels  context.CancelFunc // of Context; nil before the first call of it
	ctx      context.Context
}

// begin sets the request to a call that came; false if its slot has one already, or the turn
// is not the next.
func (r *Request) begin(b *dat.Buffer, m message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open || m.call>>16 != (r.turn+1)&slotMask {
		return false
	}
	r.open, r.turn, r.canceled, r.gone = true, m.call>>16, false, false
	r.message, r.buffer = m, b
	r.written, r.counted = 0, false
	r.timed = r.from.server.ia.MeasuresLatency()
	if m.timeout != 0 || r.timed {
		r.arrived = time.Now()
	}
	return true
}

// Method is the number that the caller chose.
func (r *Request) Method() uint16 { return r.header.code }

// Payload is what the caller sent inside the message.
func (r *Request) Payload() []byte { return r.payload }

// String says which call it is, for errors and logs: its method and number, the client's
// address, and the connection's [godat/runtime.Conn.ID].
func (r *Request) String() string { return r.from.name(r.header) }

// Conn is the connection on which the request came. The program neither receives from it nor
// sends to it.
func (r *Request) Conn() *dat.Conn { return r.from.link.conn }

// SourceLen is how many bytes the caller has for [Request.Read].
func (r *Request) SourceLen() int { return fitting(r.source.Len) }

// SinkLen is how many bytes the caller has room for by [Request.Write].
func (r *Request) SinkLen() int { return fitting(r.sink.Len) }

// fitting is a length that the peer has told, or what an int holds where it has 32 bits.
func fitting(n uint32) int { return int(min(uint64(n), math.MaxInt)) }

// Context is canceled when the caller does not wait any more: at the call's deadline, when its
// context ends, when the connection ends, and by Reply and Fail.
func (r *Request) Context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
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
	return r.ctx
}

// deadline is the call's, if its header has a time-out.
func (r *Request) deadline() time.Time {
	return r.arrived.Add(time.Duration(r.header.timeout) * time.Millisecond)
}

// Reply answers the call with a payload, which may be a part of the request's own. A payload
// that is longer than the caller takes makes the call fail with CodeTooLong, and is
// LENGTH_ERROR here. When the connection has ended the error matches [ErrEnded].
func (r *Request) Reply(payload []byte) error { return r.answer(0, payload) }

// Fail answers the call with a failure, which is the caller's [Error]. Codes of the
// program's begin at [CodeUser]. In place of 0, and of CodeDraining and CodeBusy, by which a
// server says that it has not begun a call, the caller gets CodeFailed. The text is cut behind
// 1024 bytes, or as many as an answer may have.
func (r *Request) Fail(code uint16, text string) error {
	switch code {
	case 0, CodeDraining, CodeBusy:
		code = CodeFailed
	}
	return r.answer(code, []byte(text[:min(len(text), mostText, r.most())]))
}

func (r *Request) most() int { return min(r.from.answer, r.from.server.cfg.Message) }

// answer sends the answer, and ends the request.
func (r *Request) answer(code uint16, payload []byte) (err error) {
	if len(payload) > r.most() {
		err = hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes; the caller takes %d", len(payload), r.most())
		code, payload = CodeTooLong, []byte("the answer is too long")
		payload = payload[:min(len(payload), r.most())]
	}
	r.mu.Lock()
	if !r.open {
		r.mu.Unlock()
		return hw.Errorf("rpc.Request.Reply", hw.InvalidState, hw.NoSubtype, "the request of %s was answered", r.from.peer())
	}
	if r.cancels != nil {
		r.cancels()
	}
	r.ctx, r.cancels, r.payload = nil, nil, nil
	call := r.header
	h := header{kind: kindAnswer, code: code, call: call.call, written: r.written}
	b := r.buffer
	r.buffer = nil
	copy(b.Resize(headerSize + len(payload))[headerSize:], payload)
	h.put(b.Bytes())
	counted := r.counted
	if counted && r.timed {
		r.from.server.latencies.record(call.code, time.Since(r.arrived))
	}
	r.open = false
	r.mu.Unlock()
	if counted {
		r.from.server.finish(code) // before the client hears, and may call again
	}
	if failed := r.from.link.send(b); err == nil {
		err = failed
	}
	if counted {
		r.from.server.count(-1)
	}
	return r.from.of(call, "Reply", err)
}

// cancel is called for a CANCEL.
func (r *Request) cancel(call uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open && r.header.call == call {
		r.canceled = true
		r.stop()
		if r.moves {
			r.limit.Reset(r.from.server.cfg.Patience)
		}
	}
}

// unanswered is the request's name while it has no answer.
func (r *Request) unanswered() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return ""
	}
	return r.String()
}

func (r *Request) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.gone = true
		r.stop()
	}
}

func (r *Request) stop() {
	if r.cancels != nil {
		r.cancels()
	}
}
