package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// session is the client's end of one connection. Any goroutine may call its methods.
type session struct {
	// Immutable.
	cfg     *Config
	answers *answered // of the client
	request int       // the most bytes of a payload that the server takes
	// metadata is the most bytes of metadata that both ends take; 0 if the server knows none.
	metadata  int
	peerCalls int    // that the server takes at a time
	loans     *loans // of the client
	client    *Client

	link   link
	free   chan *pending // slots without a call
	slots  []pending     // by number
	since  time.Time     // it is up
	ended  chan struct{} // closed when the connection has ended
	drains chan struct{} // closed when the server has said that it begins no calls any more
	done   chan struct{} // closed when the reader has ended
	stays  chan struct{} // sent to when the connection could not be closed; of length 1
	looks  looks

	mu   sync.Mutex
	over bool
	last bool // the server has answered all that it has begun, and begins nothing any more
}

// pending is a slot for a call.
type pending struct {
	number uint32
	answer chan *mem.Buffer // of the call under way; nil when the connection has ended

	// Under session.mu.
	call   uint32 // the slot and its turn; its caller changes it
	method uint16
	sink   uint32    // its length
	due    time.Time // its deadline; zero if it has none
	had    uint32    // the milliseconds until then when it began
	active bool      // a CALL is under way
	left   bool      // by its caller: the answer gives the slot back
	unsent bool      // the connection ended while the CALL waited
}

func (c *Client) newSession(ctx context.Context) (*session, error) {
	cfg := &c.cfg
	conn, err := c.ia.Dial(ctx, c.address, cfg.conn())
	if err != nil {
		err = refused(err)
		c.noteRefusal(err)
		return nil, err
	}
	peer, err := parseHello(conn.Private())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rpc.Dial %s: %w", c.address, err), conn.Close())
	}
	s := &session{
		cfg: cfg, answers: &c.answered, request: min(fitting(peer.message), cfg.Message),
		metadata: min(fitting(peer.metadata), cfg.Metadata), peerCalls: int(peer.calls), loans: &c.loans, client: c,
		slots: make([]pending, min(cfg.Calls, int(peer.calls))),
		since: time.Now(), ended: make(chan struct{}), drains: make(chan struct{}), done: make(chan struct{}),
		stays: make(chan struct{}, 1),
	}
	s.link = link{conn: conn, own: uint32(cfg.receives())}
	s.link.begin(peer)
	s.free = make(chan *pending, len(s.slots))
	for i := range s.slots {
		s.slots[i].number, s.slots[i].call = uint32(i), uint32(i)
		s.slots[i].answer = make(chan *mem.Buffer, 1)
		s.free <- &s.slots[i]
	}
	go s.read()
	return s, nil
}

// turnedAway is an attempt to connect that the server has rejected, with what it means by that.
type turnedAway struct{ err, means error }

func (t *turnedAway) Error() string   { return t.err.Error() + ": " + t.means.Error() }
func (t *turnedAway) Unwrap() []error { return []error{t.err, t.means} }

// refused adds to the error of an attempt what the server has said.
func refused(err error) error {
	cause, ok := errors.AsType[*hw.Cause](err)
	if !ok {
		return err
	}
	said := parseRefusal(cause.Private)
	if said == nil && errors.Is(err, event.Error(event.PeerRejected)) {
		said = errors.New("the server rejected the connection in words that are not of package rpc: another program listens there")
		if len(bytes.Trim(cause.Private, "\x00")) == 0 {
			said = fmt.Errorf("it gave no reason: a server of package rpc that speaks version 1 gives none, and this end speaks %s; or it is no server of package rpc", versions(oldest, newest))
		}
	}
	if said == nil {
		return err
	}
	return &turnedAway{err, said}
}

func (s *session) close() error {
	if !s.hasEnded() {
		s.link.because(errClosed)
	}
	err := s.link.conn.Close()
	if err != nil {
		tell(s.stays)
	}
	<-s.done
	return err
}

// tell ends a reader to which event.Closed may not come, because something could not be closed.
func tell(stays chan<- struct{}) {
	select {
	case stays <- struct{}{}:
	default:
	}
}

// call is Client.Call over this connection alone.
func (s *session) call(ctx context.Context, call *Call, dst []byte) ([]byte, error) {
	if len(call.Payload) > s.request {
		return dst, hw.Errorf(opCall, hw.LengthError, hw.NoSubtype,
			"a payload of %d bytes; the ends take %d inside a message: name memory by Call.Source for more, or raise Config.Message of both", len(call.Payload), s.request)
	}
	if n := len(call.metadata); n > s.metadata {
		return dst, hw.Errorf(opCall, hw.LengthError, hw.NoSubtype,
			"%d bytes of metadata; the ends take %d: raise Config.Metadata of both (a server of an older version takes none)", n, s.metadata)
	}
	if ctx.Err() != nil {
		return dst, &CallError{Err: context.Cause(ctx)}
	}
	select {
	case p := <-s.free:
		return s.callIn(ctx, p, call, dst)
	default:
	}
	one := s.client.waits.begin()
	p, err := s.awaitPlace(ctx)
	s.client.lately.waited(s.client.waits.end(one))
	if err != nil {
		return dst, &CallError{Err: err}
	}
	return s.callIn(ctx, p, call, dst)
}

// awaitPlace waits for a slot.
func (s *session) awaitPlace(ctx context.Context) (*pending, error) {
	select {
	case p := <-s.free:
		return p, nil
	case <-s.ended:
		return nil, s.reason()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// callIn is call in a slot, which it gives back.
func (s *session) callIn(ctx context.Context, p *pending, call *Call, dst []byte) ([]byte, error) {
	if err := s.begin(ctx, p, call); err != nil {
		return dst, &CallError{Err: err}
	}
	select {
	case b := <-p.answer:
		return s.answered(ctx, p, b, call, dst)
	case <-ctx.Done():
		return dst, s.leave(ctx, p, call)
	}
}

// begin sends the CALL. If it fails it gives the slot back.
func (s *session) begin(ctx context.Context, p *pending, call *Call) error {
	b, err := s.link.conn.WaitBuffer(ctx)
	if err != nil {
		s.free <- p
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.reason()
	}
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		s.link.conn.Release(b)
		s.free <- p
		return s.reason()
	}
	p.call = p.number | (p.call>>16+1)<<16
	p.method, p.sink, p.active, p.left = call.Method, call.Sink.Len, true, false
	h := header{code: call.Method, call: p.call, timeout: timeout(ctx)}
	p.due, _ = ctx.Deadline()
	p.had = h.timeout
	if s.metadata > 0 { // the server knows what these flags say
		h.flags = call.flags
	}
	putCall(b, h, call)
	err = s.link.send(b)
	s.mu.Unlock()
	if err != nil { // so the connection ends, or has: the reader tells all calls
		s.fail(err)
		<-p.answer
		s.free <- p
		return s.reason()
	}
	return nil
}

// timeout is what a CALL says of its caller's deadline.
func timeout(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return uint32(min(max((time.Until(deadline)+time.Millisecond-1)/time.Millisecond, 1), math.MaxUint32))
}

func (s *session) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// isOver reports whether no call begins any more.
func (s *session) isOver() bool {
	select {
	case <-s.drains:
		return true
	default:
		return s.hasEnded()
	}
}

// drain says that the server begins no calls any more, or also that it has answered all.
func (s *session) drain(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.last || last
	select {
	case <-s.drains:
	default:
		close(s.drains)
	}
}

func (s *session) reason() error { return s.link.reason() }

// read is the goroutine that takes messages, until the connection has been closed, or could not be.
func (s *session) read() {
	defer close(s.done)
	for {
		select {
		case batch := <-s.link.conn.Batches():
			if s.hear(batch) {
				return
			}
		case <-s.stays:
			s.end(errClosed)
			return
		}
	}
}

// hear takes the events of a batch, and reports whether the last one was among them.
func (s *session) hear(batch *evd.Batch) (closed bool) {
	defer batch.Release()
	for _, ev := range batch.Events() {
		switch {
		case ev.Number == event.Closed:
			s.end(errAdapterClosed)
			return true
		case ev.Ended():
			dat.ConnOf(ev)
			s.end(cmp.Or(ev.Err(), s.inOrder()))
		case ev.Op == hw.OpRecv:
			if b := s.link.conn.Message(ev); b != nil {
				s.heed(b)
			}
		}
	}
	return false
}

// heed takes a message of the server's. One that breaks the rules breaks the connection, as does a CREDIT or
// a CALL that can't be sent.
func (s *session) heed(b *mem.Buffer) {
	if err := s.take(b); err != nil {
		s.fail(err)
	}
}

func (s *session) take(b *mem.Buffer) error {
	m, err := s.link.read(b)
	if err == nil && m.kind == kindAnswer {
		if m.code != codeLater { // whose answer follows
			s.answers.count(m.code)
		}
		if m.code == CodeDraining {
			s.drain(false)
		}
		return s.deliver(m.header, b)
	}
	s.link.conn.Release(b)
	switch {
	case err != nil, m.kind == kindCredit:
	case m.kind == kindEnd:
		s.drain(true)
	default:
		err = errMalformed
	}
	return err
}

// inOrder is why a server ends a connection in order.
func (s *session) inOrder() error {
	if s.isLast() {
		return errDrains
	}
	return errLeft
}

// isLast reports whether calls that have no answer have not run.
func (s *session) isLast() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// mayHaveRun reports whether a call may have run to which the connection's end was the answer.
func (s *session) mayHaveRun(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.last && !p.unsent
}

func (s *session) deliver(h header, b *mem.Buffer) error {
	slot := int(h.call & slotMask)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot >= len(s.slots) || !s.slots[slot].active || s.slots[slot].call != h.call || h.written > s.slots[slot].sink {
		s.link.conn.Release(b)
		return errMalformed
	}
	if h.code != codeLater {
		s.client.methods.known(s.slots[slot].method).answered.count(h.code)
	}
	if s.slots[slot].left && !notRun(h.code) {
		s.slots[slot].answeredLate(&s.client.lately)
	}
	s.finish(&s.slots[slot], b)
	return nil
}

// answeredLate takes note of an answer that came behind the deadline of a call. The caller holds session.mu.
func (p *pending) answeredLate(l *lately) {
	if behind := time.Since(p.due); !p.due.IsZero() && behind >= 0 {
		l.answeredLate(time.Duration(p.had)*time.Millisecond + behind)
	}
}

// finish ends a call with its answer, or nil if the connection has ended. The caller holds mu.
func (s *session) finish(p *pending, b *mem.Buffer) {
	p.active = false
	if p.left {
		s.link.conn.Release(b)
		s.free <- p
	} else {
		p.answer <- b
	}
}

// fail breaks the connection for a reason of this end's.
func (s *session) fail(why error) { s.link.fail(why) }

// end fails all calls.
func (s *session) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	for i := range s.slots {
		p := &s.slots[i]
		p.unsent = p.active && s.link.withdraw(p.call)
	}
	_ = s.link.end(why)
	close(s.ended)
	for i := range s.slots {
		if p := &s.slots[i]; p.active {
			s.finish(p, nil)
		}
	}
}
