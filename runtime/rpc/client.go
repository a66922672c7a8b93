package rpc

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// Client makes calls over a connection. Its methods may be called from any goroutine.
type Client struct {
	link    link
	cfg     Config
	ownPZ   bool
	request int           // the most bytes of a payload that the server takes
	free    chan *pending // slots without a call
	slots   []pending     // by number
	done    chan struct{} // closed when the reader has ended

	mu   sync.Mutex
	why  error // why the connection has ended, once over
	over bool
}

// Call is what a client asks for.
type Call struct {
	Method  uint16 // a number that the server knows
	Payload []byte // goes inside the message
	// Source is memory of [Client.PZ] with RemoteRead that the server may read while the call
	// is under way, and Sink is memory with RemoteWrite that it may write. A Len of 0 is none.
	Source, Sink dat.RemoteSegment
}

// pending is a slot for a call.
type pending struct {
	number uint32
	answer chan *dat.Buffer // of the call under way; nil when the connection has ended

	// Under Client.mu.
	call   uint32 // the slot and its turn; its caller changes it
	active bool   // a CALL is under way
	left   bool   // by its caller: the answer gives the slot back
}

// Dial connects to a [Server]. ctx bounds the attempt.
func Dial(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Client, error) {
	const op = "rpc.Dial"
	if err := cfg.complete(op); err != nil {
		return nil, err
	}
	c := &Client{ownPZ: cfg.PZ == nil, done: make(chan struct{})}
	if c.ownPZ {
		pz, err := ia.NewPZ()
		if err != nil {
			return nil, err
		}
		cfg.PZ = pz
	}
	c.cfg = cfg
	conn, err := ia.Dial(ctx, address, cfg.conn())
	var peer hello
	if err == nil {
		c.link = link{conn: conn, own: uint32(cfg.receives())}
		if peer, err = parseHello(conn.Private()); err != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	if err != nil {
		if c.ownPZ {
			err = errors.Join(err, cfg.PZ.Close())
		}
		return nil, err
	}
	c.link.begin(peer)
	c.request = min(int(peer.message), cfg.Message)
	c.slots = make([]pending, min(cfg.Calls, int(peer.calls)))
	c.free = make(chan *pending, len(c.slots))
	for i := range c.slots {
		c.slots[i].number, c.slots[i].call = uint32(i), uint32(i)
		c.slots[i].answer = make(chan *dat.Buffer, 1)
		c.free <- &c.slots[i]
	}
	go c.read()
	return c, nil
}

// PZ is the zone in which memory of calls is registered.
func (c *Client) PZ() *dat.PZ { return c.cfg.PZ }

// Call makes a call, waits for its answer, and appends the answer's payload to dst. A failure
// that the server answered is an [Error]; without an answer the error is a [CallError]. A
// payload of more bytes than both ends take is LENGTH_ERROR.
//
// The memory of Source and Sink is the caller's when Call returns. When ctx ends while the
// server may still use that memory, Call waits for the answer, and breaks the connection
// if none comes within Config.Patience.
func (c *Client) Call(ctx context.Context, call Call, dst []byte) ([]byte, error) {
	const op = "rpc.Client.Call"
	if ctx == nil {
		return dst, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "a nil context")
	}
	if len(call.Payload) > c.request {
		return dst, hw.Errorf(op, hw.LengthError, hw.NoSubtype, "%d bytes; the ends take %d", len(call.Payload), c.request)
	}
	p, err := c.begin(ctx, &call)
	if err != nil {
		return dst, &CallError{Err: err}
	}
	select {
	case b := <-p.answer:
		return c.answered(p, b, dst)
	case <-ctx.Done():
		return dst, c.leave(ctx, p, &call)
	}
}

// begin sends a call.
func (c *Client) begin(ctx context.Context, call *Call) (*pending, error) {
	var p *pending
	select {
	case p = <-c.free:
	case <-c.done:
		return nil, c.reason()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b, err := c.link.conn.WaitBuffer(ctx)
	if err != nil {
		c.free <- p
		if ctx.Err() == nil {
			err = c.reason()
		}
		return nil, err
	}
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		c.link.conn.Release(b)
		c.free <- p
		return nil, c.reason()
	}
	p.call = p.number | (p.call>>16+1)<<16
	p.active, p.left = true, false
	h := header{kind: kindCall, code: call.Method, call: p.call, timeout: timeout(ctx)}
	fill(b, h, call)
	err = c.link.send(b)
	c.mu.Unlock()
	if err != nil { // so the connection ends, or has: the reader tells all calls
		c.fail(err)
		<-p.answer
		c.free <- p
		return nil, c.reason()
	}
	return p, nil
}

// fill makes the message of a call.
func fill(b *dat.Buffer, h header, call *Call) {
	at := headerSize
	for _, memory := range []struct {
		flag byte
		what *dat.RemoteSegment
	}{{flagSource, &call.Source}, {flagSink, &call.Sink}} {
		if memory.what.Len != 0 {
			h.flags |= memory.flag
			_, _ = memory.what.AppendBinary(b.Resize(at + dat.RemoteSegmentSize)[:at]) // in its place
			at += dat.RemoteSegmentSize
		}
	}
	copy(b.Resize(at + len(call.Payload))[at:], call.Payload)
	h.put(b.Bytes())
}

// timeout is what a CALL says of its caller's deadline.
func timeout(ctx context.Context) uint32 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return uint32(min(max((time.Until(deadline)+time.Millisecond-1)/time.Millisecond, 1), math.MaxUint32))
}

// answered ends a call whose answer has come, or whose connection has ended.
func (c *Client) answered(p *pending, b *dat.Buffer, dst []byte) ([]byte, error) {
	c.free <- p
	if b == nil {
		return dst, &CallError{MayHaveRun: true, Err: c.reason()}
	}
	h, _, _, payload, _ := parse(b.Bytes()) // which the reader has checked
	defer c.link.conn.Release(b)
	switch h.code {
	case 0:
		return append(dst, payload...), nil
	case CodeDraining, CodeBusy:
		return dst, &CallError{Err: &Error{h.code, string(payload)}}
	}
	return dst, &Error{h.code, string(payload)}
}

// leave ends a call whose context has ended.
func (c *Client) leave(ctx context.Context, p *pending, call *Call) error {
	if c.link.withdraw(p.call) {
		c.mu.Lock()
		p.active = false
		p.call -= 1 << 16 // the server has not seen this turn
		c.mu.Unlock()
		c.free <- p
		return &CallError{Err: context.Cause(ctx)}
	}
	err := &CallError{MayHaveRun: true, Err: context.Cause(ctx)}
	c.cancel(p.call)
	if call.Source.Len == 0 && call.Sink.Len == 0 {
		c.mu.Lock()
		left := p.active
		p.left = left
		c.mu.Unlock()
		if left {
			return err // the reader gives the slot back
		}
	}
	wait := time.NewTimer(c.cfg.Patience)
	defer wait.Stop()
	select {
	case b := <-p.answer:
		c.link.conn.Release(b)
	case <-wait.C:
		_ = c.link.conn.Endpoint.Disconnect(dat.Abrupt)
		c.link.conn.Release(<-p.answer)
	}
	c.free <- p
	return err
}

// cancel tells the server that nobody waits for a call. Where there is no buffer, a
// goroutine waits for one, as creditLater does.
func (c *Client) cancel(call uint32) {
	if b := c.link.conn.Buffer(); b != nil {
		_ = c.link.send(bare(b, kindCancel, call)) // fails when the connection has ended
		return
	}
	go c.cancelLater(call)
}

func (c *Client) cancelLater(call uint32) {
	if b, err := c.link.conn.WaitBuffer(context.Background()); err == nil {
		_ = c.link.send(bare(b, kindCancel, call))
	}
}

// reason is why the connection has ended.
func (c *Client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ended(c.why)
}

// Close ends the connection. Calls under way fail. Closing again does nothing. While memory of
// PZ is not freed, the error is INVALID_STATE/PZ_IN_USE; then Close may be called again.
func (c *Client) Close() error {
	err := c.link.conn.Close()
	<-c.done
	if c.ownPZ {
		err = errors.Join(err, c.cfg.PZ.Close())
	}
	return err
}

// read is the goroutine that takes messages, until the connection has been closed.
func (c *Client) read() {
	defer close(c.done)
	for batch := range c.link.conn.Batches() {
		for _, ev := range batch.Events() {
			switch {
			case ev.Number == dat.Closed:
				batch.Release()
				c.end(nil)
				return
			case ev.Ended():
				dat.ConnOf(ev)
				c.end(ev.Err())
			case ev.Op == dat.OpRecv:
				if b := c.link.conn.Message(ev); b != nil && c.take(b) != nil {
					c.fail(errMalformed)
				}
			}
		}
		batch.Release()
	}
}

// take takes a message of the server's.
func (c *Client) take(b *dat.Buffer) error {
	h, _, _, _, err := parse(b.Bytes())
	if err == nil {
		err = c.link.took(h.taken)
	}
	if err == nil && h.kind == kindAnswer {
		return c.deliver(h.call, b)
	}
	c.link.conn.Release(b)
	if err == nil && h.kind != kindCredit {
		err = errMalformed
	}
	return err
}

// deliver gives an answer to its caller.
func (c *Client) deliver(call uint32, b *dat.Buffer) error {
	slot := int(call & slotMask)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slot >= len(c.slots) || !c.slots[slot].active || c.slots[slot].call != call {
		c.link.conn.Release(b)
		return errMalformed
	}
	p := &c.slots[slot]
	p.active = false
	if p.left {
		c.link.conn.Release(b)
		c.free <- p
	} else {
		p.answer <- b
	}
	return nil
}

// fail breaks the connection for a reason of this end's.
func (c *Client) fail(why error) {
	c.mu.Lock()
	if c.why == nil {
		c.why = why
	}
	c.mu.Unlock()
	_ = c.link.conn.Endpoint.Disconnect(dat.Abrupt)
}

// end fails all calls.
func (c *Client) end(why error) {
	c.link.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	if c.why == nil {
		c.why = why
	}
	for i := range c.slots {
		if p := &c.slots[i]; p.active {
			p.active = false
			if p.left {
				c.free <- p
			} else {
				p.answer <- nil
			}
		}
	}
}
