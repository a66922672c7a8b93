package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"godat/hw"
	"godat/mem"
)

// An answer that is longer than a message, of a caller who does not know how long it may be, goes in two
// steps. The server keeps it for the slot of the call, and answers with its length. The client then has
// memory for it, and asks for it by a CALL with FETCH in the same slot, which no handler gets: so a
// connection has at most Calls kept answers. The server drops one at the next CALL of its slot, at the end
// of the connection, and when Config.Stall has passed. A shutdown waits for each, as for an answer that
// waits to be sent.

const (
	// codeLater is the code of an ANSWER that has the length of one that is kept, 4 bytes.
	codeLater uint16 = 7
	// mostLater is the most bytes of an answer that is kept.
	mostLater = 64 << 20
)

// kept is an answer that waits for its FETCH.
type kept struct {
	text  []byte
	limit *time.Timer
}

// setAside keeps a copy of an answer that is too long for a message, for a caller who fetches it. It returns
// the answer in its place; nil if it keeps nothing. The caller holds mu.
func (r *Request) setAside(answer []byte) (length []byte) {
	if r.header.flags&flagLater == 0 || r.answered || r.gone || len(answer) > mostLater || r.most() < 4 {
		return nil
	}
	k, p, slot := &kept{text: bytes.Clone(answer)}, r.from, r.slot
	p.server.count(1)
	k.limit = time.AfterFunc(math.MaxInt64, func() { p.forget(slot, k) })
	slot.kept.Store(k)
	k.limit.Reset(p.server.cfg.Stall) // from now on there is something to forget
	return binary.BigEndian.AppendUint32(nil, uint32(len(answer)))
}

// forget drops the answer that is kept for a slot, if it is that one, or if which is nil any.
func (p *served) forget(slot *slot, which *kept) {
	k := slot.kept.Load()
	if k == nil || which != nil && k != which || !slot.kept.CompareAndSwap(k, nil) {
		return
	}
	k.limit.Stop()
	p.server.count(-1)
}

// fetch begins a FETCH, which has the slot's request. No handler gets it.
func (p *served) fetch(r *Request) error {
	k := r.slot.kept.Swap(nil)
	if k == nil {
		return r.refuse(CodeUnknown, "the server does not keep the answer any more")
	}
	k.limit.Stop()
	p.server.fetches.Go(func() { r.give(k) })
	return nil
}

// give writes a kept answer into the memory of its FETCH, in a goroutine of its own.
func (r *Request) give(k *kept) {
	code, text := uint16(0), ""
	if err := r.WriteBytes(k.text, 0); err != nil {
		code, text = CodeFailed, err.Error()
	}
	r.mu.Lock()
	told := r.answered
	b := r.finish(code, r.fittingText(text))
	r.mu.Unlock()
	_ = r.respond(b, told) // fails when the connection has ended
	r.from.server.count(-1)
}

// fetch asks for an answer that the server keeps for a call's slot, and appends it to dst. The call has run.
func (s *session) fetch(ctx context.Context, p *pending, length []byte, call *Call, dst []byte) (got []byte, err error) {
	if len(length) != 4 || binary.BigEndian.Uint32(length) == 0 || binary.BigEndian.Uint32(length) > mostLater {
		s.free <- p
		s.fail(errMalformed)
		return dst, &CallError{MayHaveRun: true, Err: ended(errMalformed)}
	}
	n := int(binary.BigEndian.Uint32(length))
	if n > s.cfg.Answer {
		s.free <- p
		return dst, &Error{CodeTooLong, fmt.Sprintf("the answer has %d bytes; the client's Config.Answer is %d", n, s.cfg.Answer)}
	}
	fetched, written, begun := dst, 0, false
	err = s.loans.borrow(s.cfg.PZ, n, func(m *mem.LMR) error {
		begun = true
		_, err := s.callIn(ctx, p, &Call{Method: call.Method, Sink: m.Remote(0, n), Written: &written, flags: flagFetch}, nil)
		if err == nil && written < n {
			return hw.Errorf("", hw.LengthError, hw.NoSubtype, "%d bytes of %d came", written, n)
		}
		if err == nil {
			fetched = append(dst, m.Bytes()...)
		}
		return err
	})
	if !begun {
		s.free <- p
	}
	if none, ok := errors.AsType[*CallError](err); ok {
		err = none.Err
	}
	if err != nil {
		return dst, &CallError{MayHaveRun: true, Err: fmt.Errorf("its answer of %d bytes was not fetched: %w", n, err)}
	}
	return fetched, nil
}
