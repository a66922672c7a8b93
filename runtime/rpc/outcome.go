package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/mem"
)

// answered ends a call whose answer has come, or whose connection has ended. A handler that sees
// the end of the call's time may fail it: the caller's error is that of its context then.
func (s *session) answered(ctx context.Context, p *pending, b *mem.Buffer, call *Call, dst []byte) ([]byte, error) {
	if b == nil {
		s.free <- p
		return dst, &CallError{MayHaveRun: s.mayHaveRun(p), Err: s.reason()}
	}
	m, _ := parse(b.Bytes()) // which the reader has checked
	defer s.link.conn.Release(b)
	if call.Written != nil {
		*call.Written = int(m.written)
	}
	if m.code == codeLater && call.flags&flagLater != 0 {
		return s.fetch(ctx, p, m.payload, call, dst)
	}
	s.giveBack(p, m.code)
	if m.code == 0 {
		return append(dst, m.payload...), nil
	}
	failed := &Error{m.code, string(m.payload)}
	if notRun(m.code) {
		return dst, &CallError{Err: whenPassed(ctx, failed)}
	}
	if cause := passed(ctx); cause != nil {
		return dst, &CallError{MayHaveRun: true, Err: fmt.Errorf("%w; the server answered: %w", cause, failed)}
	}
	return dst, failed
}

// giveBack frees a slot. That of a call for which the server had no time rests: a program that asks again
// at once, and many do, asks no oftener than helps.
func (s *session) giveBack(p *pending, code uint16) {
	if code == CodeBusy {
		time.AfterFunc(refusedRests, func() { s.free <- p })
		return
	}
	s.free <- p
}

// refusedRests is how long a slot rests when its call was refused with CodeBusy.
const refusedRests = 10 * time.Millisecond

// notRun reports whether a failure says that the server has not begun the call.
func notRun(code uint16) bool { return code == CodeDraining || code == CodeBusy }

// whenPassed is a server's refusal, or, if the call's time is over, the end of that: a caller who
// looks for an Error of the server's has none then, since the call has not run.
func whenPassed(ctx context.Context, refusal error) error {
	if cause := passed(ctx); cause != nil {
		return fmt.Errorf("%w; the server answered: %s", cause, refusal)
	}
	return refusal
}

// passed is why a context has ended, also if its deadline has passed and its timer is late.
func passed(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// leave ends a call whose context has ended.
func (s *session) leave(ctx context.Context, p *pending, call *Call) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		s.client.lately.had(time.Duration(p.had) * time.Millisecond)
	}
	if s.link.withdraw(p.call) {
		s.mu.Lock()
		p.active = false
		p.call -= 1 << 16 // the server has not seen this turn
		s.mu.Unlock()
		s.free <- p
		return &CallError{Err: context.Cause(ctx)}
	}
	err := &CallError{MayHaveRun: true, Err: context.Cause(ctx)}
	s.cancel(p.call)
	if call.Source.Len == 0 && call.Sink.Len == 0 {
		s.mu.Lock()
		left := p.active
		p.left = left
		s.mu.Unlock()
		if left {
			return err // the reader gives the slot back
		}
	}
	b, waited, came := s.awaitMemory(p)
	switch {
	case !came:
		s.fail(fmt.Errorf("the server of method %d still had a call's memory %v after the call's end, and nothing moved for Config.Patience, %v, or it took Config.Stall, so this client broke the connection",
			call.Method, waited, s.cfg.Patience))
		b = <-p.answer
	case b != nil:
		m, _ := parse(b.Bytes()) // which the reader has checked
		err.MayHaveRun = !notRun(m.code)
	default:
		err.MayHaveRun = s.mayHaveRun(p)
	}
	s.link.conn.Release(b)
	s.free <- p
	return err
}

// awaitMemory waits for the answer of a call whose caller has left, and whose memory the server has: for
// Config.Patience, and for as long again while octets of the connection move. came is false without an
// answer; b is nil if the connection has ended.
func (s *session) awaitMemory(p *pending) (b *mem.Buffer, waited time.Duration, came bool) {
	began, late := time.Now(), 0
	var seen progress
	seen.moves(s.link.conn)
	due := began.Add(s.cfg.Patience)
	wait := time.NewTimer(s.cfg.Patience)
	defer wait.Stop()
	for {
		select {
		case b = <-p.answer:
			return b, time.Since(began), true
		case <-wait.C:
		}
		moves, paused := seen.moves(s.link.conn), isLate(due, s.cfg.Patience) && late < lateTries
		if waited = time.Since(began).Round(time.Millisecond); !paused && (!moves || waited >= s.cfg.Stall) {
			return nil, waited, false
		}
		if paused {
			late++
		}
		due = time.Now().Add(s.cfg.Patience)
		wait.Reset(s.cfg.Patience)
	}
}

// cancel tells the server that nobody waits for a call. Where there is no buffer, a
// goroutine waits for one, as creditLater does.
func (s *session) cancel(call uint32) {
	if b := s.link.conn.Buffer(); b != nil {
		_ = s.link.send(bare(b, kindCancel, call)) // fails when the connection has ended
		return
	}
	go s.cancelLater(call)
}

func (s *session) cancelLater(call uint32) {
	if b, err := s.link.conn.WaitBuffer(context.Background()); err == nil {
		_ = s.link.send(bare(b, kindCancel, call))
	}
}
