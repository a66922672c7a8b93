package runtime

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Conn is a connection with what a program needs around its endpoint: a protection
// zone, buffers, receives that are always posted, a channel of events, and an end.
// [IA.Dial] and [Listener.Accept] make one. Its methods may be called from any
// goroutine.
//
// A buffer has one owner at a time. A receive gives it to the program ([Conn.Message]);
// the program sends it ([Conn.Send]) or gives it back ([Conn.Release]), and the
// connection posts it again. A send has no event of its own: when it fails the
// connection ends, and the event of that says why.
//
// A peer may have sent Depth messages that nobody has answered yet, if each answer
// goes out by Send: so many receives are there for it whatever this end does. A program
// that keeps more than Depth messages at a time gives its peer less.
type Conn struct {
	// Endpoint is the endpoint below: for RDMA, whose events come to Events, too.
	// Cookies whose highest bit is set are the connection's; see [Contexts] for
	// others. A program does not close it.
	Endpoint *Endpoint
	// Context is the program's own, set in ConnConfig.Setup.
	Context any

	// Immutable once the connection was made.
	ia       *IA
	cfg      ConnConfig
	pz       *mem.PZ
	pool     *mem.BufferPool
	events   *evd.Dispatcher
	listener *Listener // nil if it was dialed
	peer     string
	apart    bool // events is its own
	ended    chan struct{}

	missing atomic.Int32 // receives that found no buffer
	taken   atomic.Int32 // buffers that Buffer gave out
	own     []bool       // by index, its owner's: it was one of these
	closed  atomic.Bool
	over    atomic.Bool // ended is closed
	private atomic.Pointer[[]byte]

	outbox *ep.Outbox // of the goroutine that calls Queue

	closing sync.Mutex
	memory  []*mem.LMR // that Alloc made, under closing
}

// The cookies of a connection's own operations: a buffer's index below these.
const (
	connCookie = 1 << 63
	sendCookie = connCookie | 1<<62
)

// ConnOf is the connection that an event is about; nil if it is no Conn's.
func ConnOf(ev Event) *Conn {
	c, _ := ep.Of(ev).Context().(*Conn)
	return c
}

// filterConn keeps the ends of sends, and of receives that had no message, from the
// channel: their buffers are free. It is an [evd.Filter].
func filterConn(source any, number evd.Number, status hw.Status, cookie uint64, data any) bool {
	e, _ := source.(*ep.Endpoint)
	c, _ := e.Context().(*Conn)
	switch {
	case c == nil:
	case cookie&connCookie != 0:
		if cookie&sendCookie == connCookie && status == hw.StatusSuccess {
			return true
		}
		c.put(c.pool.At(int(uint32(cookie))))
		return false
	case number == evd.Established:
		if private, _ := data.([]byte); private != nil {
			c.private.Store(&private)
		}
	case number.Stream() == evd.StreamConnection:
		c.end()
	}
	return true
}

// end notes that the connection is over.
func (c *Conn) end() {
	if !c.over.Swap(true) {
		close(c.ended)
	}
}

// put gives a buffer back to the pool.
func (c *Conn) put(b *mem.Buffer) {
	if i := b.Index(); c.own[i] {
		c.own[i] = false
		c.taken.Add(-1)
	}
	b.Put()
}

// Events is the channel on which the events of the connection come: receives, which
// have messages; the program's own operations; and the end of the connection, which
// is the last one (see [evd.Event.Ended]). Connections that one Listener accepted
// share its channel unless ConnConfig.Apart says otherwise. It is closed when what
// it belongs to is.
func (c *Conn) Events() <-chan Event {
	if c == nil {
		return nil
	}
	return c.events.C()
}

// PZ is the zone of the connection's memory.
func (c *Conn) PZ() *PZ {
	if c == nil {
		return nil
	}
	return c.pz
}

// Alloc allocates memory in the connection's zone: for RDMA, and for a peer that is
// told where it is. Close frees it. A nil or closed connection is INVALID_HANDLE/EP;
// other errors are those of [mem.PZ.Alloc].
func (c *Conn) Alloc(size int, privileges Privileges) (*LMR, error) {
	const op = "runtime.Conn.Alloc"
	if c == nil {
		return nil, closedConn(op)
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed.Load() {
		return nil, closedConn(op)
	}
	l, err := c.pz.Alloc(size, privileges, mem.WithUnmapOnFree())
	if err == nil {
		c.memory = append(c.memory, l)
	}
	return l, err
}

// Private is the private data that the peer accepted or asked with; nil before
// that.
func (c *Conn) Private() []byte {
	if c == nil {
		return nil
	}
	if p := c.private.Load(); p != nil {
		return *p
	}
	return nil
}

// String is the peer's address.
func (c *Conn) String() string {
	if c == nil {
		return "no connection"
	}
	return c.peer
}

// Buffer takes a buffer, for a message that answers none or for RDMA; its length is
// 0. It is nil when the program has taken Depth of them already that were neither
// sent nor released, and when the connection is closed.
func (c *Conn) Buffer() *Buffer {
	if c == nil || c.closed.Load() {
		return nil
	}
	if int(c.taken.Add(1)) > c.cfg.Depth {
		c.taken.Add(-1)
		return nil
	}
	b := c.pool.Get()
	if b == nil {
		c.taken.Add(-1)
		return nil
	}
	c.own[b.Index()] = true
	return b
}

// Message is the buffer with the message that a receive has brought; the program
// owns it from then on. It is nil for all other events, those of other connections too, and when the
// connection is closed. It is called once for an event.
func (c *Conn) Message(ev Event) *Buffer {
	if c == nil || ev.Source != c.Endpoint || ev.Cookie&sendCookie != connCookie || ev.Status != hw.StatusSuccess || c.closed.Load() {
		return nil
	}
	b := c.pool.At(int(uint32(ev.Cookie)))
	b.Return(int(ev.Length))
	c.receive()
	return b
}

// receive posts one receive; a buffer that is missing is made up for later.
func (c *Conn) receive() {
	b := c.pool.Get()
	if b == nil {
		c.missing.Add(1)
		return
	}
	b.Resize(b.Cap())
	seg := b.Segment()
	b.Lend()
	if c.Endpoint.PostRecv(connCookie|uint64(b.Index()), hw.Default, seg) != nil {
		b.Put() // the connection is over
		c.missing.Add(1)
	}
}

// refill posts the receives that are missing, as far as there are buffers.
func (c *Conn) refill() {
	for n := c.missing.Swap(0); n > 0; n-- {
		c.receive()
	}
}

// Send sends the bytes in use of a buffer as one message, and takes the buffer from
// the program, also when it fails. The buffer is free again when the message has been
// sent; no event tells of it. Errors are those of [ep.Endpoint.PostSend];
// a nil buffer, and one of another connection or pool, is INVALID_PARAMETER, and stays
// the program's; a nil or closed connection is INVALID_HANDLE/EP.
func (c *Conn) Send(b *Buffer) error {
	if !c.has(b) || c.closed.Load() {
		return c.whyNot("runtime.Conn.Send", b)
	}
	seg := b.Segment()
	b.Lend()
	err := c.Endpoint.PostSend(sendCookie|uint64(b.Index()), hw.Default, seg)
	if err != nil {
		c.put(b)
	}
	if c.missing.Load() != 0 {
		c.refill()
	}
	return err
}

// Queue is Send for a server that has more to say: the message goes out with the next
// Flush, together with all that was queued. One goroutine at a time calls Queue,
// Outbox and Flush. Errors are those of Send and of [ep.Outbox.Add].
func (c *Conn) Queue(b *Buffer) error {
	if !c.has(b) || c.closed.Load() {
		return c.whyNot("runtime.Conn.Queue", b)
	}
	d := ep.DTO{Op: hw.OpSend, Cookie: sendCookie | uint64(b.Index()), Segment: b.Segment()}
	b.Lend()
	err := c.outbox.Add(d)
	if err != nil {
		c.put(b)
	}
	return err
}

// Outbox takes requests that go out with the messages queued, in order: an RDMA write
// before the message that tells of it.
func (c *Conn) Outbox() *Outbox {
	if c == nil {
		return nil
	}
	return c.outbox
}

// Flush posts what was queued as one batch. Errors are those of [ep.Outbox.Flush];
// a nil or closed connection is INVALID_HANDLE/EP.
func (c *Conn) Flush() error {
	if c == nil || c.closed.Load() {
		return closedConn("runtime.Conn.Flush")
	}
	err := c.outbox.Flush()
	if c.missing.Load() != 0 {
		c.refill()
	}
	return err
}

// whyNot says why a buffer can't be sent.
func (c *Conn) whyNot(op string, b *Buffer) error {
	switch {
	case c == nil:
		return closedConn(op)
	case b == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no buffer: the connection is closed, or has none left")
	case c.closed.Load():
		return closedConn(op)
	}
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "the buffer is not of this connection")
}

// has reports whether a buffer is one of the connection's.
func (c *Conn) has(b *Buffer) bool {
	return c != nil && b != nil && c.pool.At(b.Index()) == b
}

// Release gives a buffer back that the program does not send. Nothing happens to nil, to
// a buffer of another connection or pool, and on a connection that is closed.
func (c *Conn) Release(b *Buffer) {
	if !c.has(b) {
		return
	}
	c.put(b)
	if c.missing.Load() != 0 {
		c.refill()
	}
}

// Shutdown ends the connection in order: what was posted is sent, the peer is told,
// and then everything is given back as by Close. If ctx ends first the connection is
// closed as it is, and the error is ctx's. A nil ctx is INVALID_PARAMETER, a nil
// connection INVALID_HANDLE/EP.
func (c *Conn) Shutdown(ctx context.Context) error {
	const op = "runtime.Conn.Shutdown"
	if c == nil {
		return closedConn(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	return errors.Join(c.drain(ctx), c.Close())
}

// drain disconnects in order and waits for the end.
func (c *Conn) drain(ctx context.Context) error {
	if c.Endpoint.Disconnect(ep.Graceful) != nil {
		return nil // not connected
	}
	select {
	case <-c.ended:
		return nil
	case <-c.ia.down: // whose close breaks the connection off without an event
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close gives back all that the connection has, what Alloc made included; a connection
// that is still up is broken off. Buffers that the program has may not be used any
// more; under ConnConfig.Debug the error names their holders. Closing it again
// waits for the first call and does nothing, or tries once more what failed.
func (c *Conn) Close() error {
	if c == nil {
		return closedConn("runtime.Conn.Close")
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	c.closed.Store(true)
	c.end()
	if c.Endpoint != nil {
		if err := c.Endpoint.Close(); err != nil {
			return err // the rest stands below it
		}
	}
	var kept error
	if c.pool != nil {
		// A pool that is closed complains once of the buffers that the program kept.
		if kept = c.pool.Close(); kept != nil && c.pool.Close() != nil {
			return kept
		}
	}
	var errs []error
	for _, l := range c.memory {
		errs = append(errs, l.Free())
	}
	if c.pz != nil && c.pz != c.cfg.PZ {
		errs = append(errs, c.pz.Close())
	}
	if c.apart && c.events != nil {
		errs = append(errs, c.events.Close())
	}
	err := errors.Join(errs...)
	if err == nil && c.listener != nil {
		c.listener.forget(c) // last: a listener's close tries once more what failed
	}
	return errors.Join(kept, err)
}
