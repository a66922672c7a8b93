package rpc

import (
	"context"
	"sync"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

const slotMask = 1<<16 - 1

// Request is a call that came to a server. One goroutine at a time calls its methods. Reply or
// Fail ends it, whatever their error: the request, and the bytes of Payload, must not be used
// any more then. Before that they are the holder's, also when the connection or the server
// has ended.
type Request struct {
	from *served // immutable

	// Of the reader before it hands the request over, and then of its holder.
	header       header
	message      *dat.Buffer
	payload      []byte
	source, sink dat.RemoteSegment
	arrived      time.Time
	counted      bool // by the server

	mu       sync.Mutex
	open     bool // from the CALL to its answer
	turn     uint32
	canceled bool
	cancels  context.CancelFunc // of Context; nil before the first call of it
	ctx      context.Context
}

// begin sets the request to a call that came; false if its slot has one already, or the turn
// is not the next.
func (r *Request) begin(b *dat.Buffer, h header, source, sink dat.RemoteSegment, payload []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open || h.call>>16 != (r.turn+1)&slotMask {
		return false
	}
	r.open, r.turn, r.canceled = true, h.call>>16, false
	r.header, r.message, r.payload, r.source, r.sink = h, b, payload, source, sink
	r.counted = false
	if h.timeout != 0 {
		r.arrived = time.Now()
	}
	return true
}

// Method is the number that the caller chose.
func (r *Request) Method() uint16 { return r.header.code }

// Payload is what the caller sent inside the message.
func (r *Request) Payload() []byte { return r.payload }

// Conn is the connection on which the request came. The program neither receives from it nor
// sends to it.
func (r *Request) Conn() *dat.Conn { return r.from.link.conn }

// SourceLen is how many bytes the caller has for [Request.Read].
func (r *Request) SourceLen() int { return int(r.source.Len) }

// SinkLen is how many bytes the caller has room for by [Request.Write].
func (r *Request) SinkLen() int { return int(r.sink.Len) }

// Context is canceled when the caller does not wait any more: at the call's deadline, when its
// context ends, when the connection ends, and by Reply and Fail.
func (r *Request) Context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		if r.header.timeout != 0 {
			r.ctx, r.cancels = context.WithDeadline(context.Background(), r.arrived.Add(time.Duration(r.header.timeout)*time.Millisecond))
		} else {
			r.ctx, r.cancels = context.WithCancel(context.Background())
		}
		if r.canceled {
			r.cancels()
		}
	}
	return r.ctx
}

// Read reads the caller's memory from offset on into a segment of [Server.PZ]'s memory, by
// RDMA, and waits for that. A part that the caller does not have is LENGTH_ERROR.
func (r *Request) Read(into dat.Segment, offset int) error {
	return r.move(dat.OpRead, into, r.source, offset)
}

// Write writes a segment of [Server.PZ]'s memory to the caller's memory from offset on, by
// RDMA, and waits for that. The bytes are there before the caller has the answer. A part that
// the caller does not have is LENGTH_ERROR.
func (r *Request) Write(from dat.Segment, offset int) error {
	return r.move(dat.OpWrite, from, r.sink, offset)
}

// ReadBytes is Read into memory that is not registered: it registers into for the time of the
// read.
func (r *Request) ReadBytes(into []byte, offset int) error {
	return lend(r.from.server.PZ(), into, dat.LocalWrite, func(m *dat.LMR) error { return r.Read(segment(m, len(into)), offset) })
}

// WriteBytes is Write from memory that is not registered: it registers from for the time of the
// write.
func (r *Request) WriteBytes(from []byte, offset int) error {
	return lend(r.from.server.PZ(), from, dat.LocalRead, func(m *dat.LMR) error { return r.Write(segment(m, len(from)), offset) })
}

func (r *Request) move(op dat.Op, mine dat.Segment, callers dat.RemoteSegment, offset int) error {
	if offset < 0 || uint64(offset)+uint64(mine.Len) > uint64(callers.Len) {
		return hw.Errorf("rpc.Request", hw.LengthError, hw.NoSubtype, "%d bytes from %d on; the caller has %d", mine.Len, offset, callers.Len)
	}
	if mine.Len == 0 {
		return nil
	}
	// Without the caller's deadline, at which Do would break the connection: the caller waits.
	return r.from.link.conn.Do(context.Background(), dat.DTO{Op: op, Segment: mine, Remote: callers.Slice(offset, int(mine.Len))})
}

// Reply answers the call with a payload, which may be a part of the request's own. A payload
// that is longer than the caller takes makes the call fail with CodeTooLong, and is
// LENGTH_ERROR here. When the connection has ended the error matches [ErrEnded].
func (r *Request) Reply(payload []byte) error { return r.answer(0, payload) }

// Fail answers the call with a failure, which is the caller's [Error]. Codes of the
// program's begin at [CodeUser]; a text that is too long is cut.
func (r *Request) Fail(code uint16, text string) error {
	if code == 0 {
		code = CodeUser
	}
	return r.answer(code, []byte(text[:min(len(text), r.most())]))
}

// most is the most bytes of an answer's payload.
func (r *Request) most() int { return min(r.from.answer, r.from.server.cfg.Message) }

// answer sends the answer, and ends the request.
func (r *Request) answer(code uint16, payload []byte) (err error) {
	if len(payload) > r.most() {
		err = hw.Errorf("rpc.Request.Reply", hw.LengthError, hw.NoSubtype, "%d bytes; the caller takes %d", len(payload), r.most())
		code, payload = CodeTooLong, []byte("the answer is too long")
		payload = payload[:min(len(payload), r.most())]
	}
	r.mu.Lock()
	if !r.open {
		r.mu.Unlock()
		return hw.Errorf("rpc.Request.Reply", hw.InvalidState, hw.NoSubtype, "the request was answered")
	}
	if r.cancels != nil {
		r.cancels()
	}
	r.ctx, r.cancels, r.payload = nil, nil, nil
	h := header{kind: kindAnswer, code: code, call: r.header.call}
	b := r.message
	r.message = nil
	copy(b.Resize(headerSize + len(payload))[headerSize:], payload)
	h.put(b.Bytes())
	counted := r.counted
	r.open = false
	r.mu.Unlock()
	if failed := r.from.link.send(b); err == nil {
		err = failed
	}
	if counted {
		r.from.server.finish()
	}
	return err
}

// cancel is called for a CANCEL.
func (r *Request) cancel(call uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open && r.header.call == call {
		r.stop()
	}
}

// abandon is called when the connection has ended.
func (r *Request) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		r.stop()
	}
}

func (r *Request) stop() {
	r.canceled = true
	if r.cancels != nil {
		r.cancels()
	}
}
