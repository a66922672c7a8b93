package runtime

import (
	"log/slog"
	"runtime/trace"
	"sync"
	"sync/atomic"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// Conn is a connection with what a program needs around its endpoint: a protection
// zone, buffers, receives that are always posted, a channel of events, and an end.
// [IA.Dial], [Listener.Accept] and [Listener.Dial] make one. Its methods may be called
// from any goroutine, except for Queue, Outbox and Flush.
//
// A buffer has one owner at a time. A receive gives it to the program ([Conn.Message]);
// the program sends it ([Conn.Send]) or gives it back ([Conn.Release], not
// [mem.Buffer.Put]), and the connection posts it again. A send has no event of its own: when it fails, the
// connection ends, and the event of the end says why.
//
// A buffer that the program has stays its own, with its memory, until the program gives it
// back, whatever is closed meanwhile: the connection, its listener, the adapter. So a
// handler may work on a message in a goroutine of its own, and end by Send or Release as
// always; the memory of the buffers is freed behind the last one.
//
// A peer may send Depth messages ahead of the answers, as long as each answer goes out
// by Send: the connection always has that many receives for it. A program that keeps
// more than Depth messages at a time leaves its peer fewer receives.
type Conn struct {
	// Endpoint is the connection's endpoint, for RDMA; events of its operations come to
	// Events, too, and before the event of the connection's end: a post on a connection
	// that has ended is INVALID_STATE/EP_DISCONNECTED. Cookies whose highest bit is set are
	// the connection's, and posts with them are INVALID_PARAMETER.
	// The program does not close the endpoint.
	Endpoint *ep.Endpoint
	// Context is a value of the program's, which the library does not touch. What
	// ConnConfig.Setup puts there is seen by every goroutine that has the connection
	// from Accept, Dial or an event. A program that sets it later, when Accept or
	// Dial has returned, must keep other goroutines from reading it meanwhile: events
	// of the connection may come to them before.
	Context any

	// Immutable once the connection was made.
	ia       *IA
	cfg      ConnConfig
	pz       *mem.PZ
	own      ep.Own          // of Endpoint
	pool     *mem.BufferPool // nil with ConnConfig.OwnReceives
	buffers  mem.Own         // of pool
	piece    mem.Segment     // all of the pool's first buffer
	step     uint64          // from each of its buffers to the next, in bytes
	events   *evd.Dispatcher
	polled   *evd.Dispatcher // nil without ConnConfig.Queue
	listener *Listener       // nil if it was dialed
	peer     string          // what String returns
	ended    chan struct{}   // closed when the connection has ended
	gone     chan struct{}   // closed when Close has begun
	up       chan struct{}   // of IA.Dial, which waits for a value; nil otherwise
	id       uint64
	task     *trace.Task // of runtime/trace; nil if that did not run when the connection began

	missing atomic.Int32 // receives that are not posted
	refuses atomic.Bool  // Message returns nil, because Shutdown or Close has begun
	closed  atomic.Bool
	over    atomic.Bool // set when ended is closed
	wasUp   atomic.Bool
	private atomic.Pointer[[]byte]
	addrs   atomic.Pointer[connAddrs] // when they are known
	last    atomic.Pointer[connEnd]   // once Receive was called
	hook    atomic.Pointer[hookCall]  // the last call of a hook

	outbox *ep.Outbox // the goroutine that calls Queue uses it

	closing sync.Mutex  // held while the connection is made, and while it is closed
	memory  mem.Regions // what Alloc and Register made; made under closing
}

// The cookies of a connection's own operations. The other bits are the buffer's tag, of
// which the low 32 bits are its index; see [memory.Ownership].
const (
	connCookie = 1 << 63
	sendCookie = connCookie | 1<<62
)

// ConnOf is the connection that an event is about, or nil if the event belongs to no
// Conn, as Closed does. For the event that ends a connection, it also gives the connection's place in
// its listener back (see [ConnConfig].Conns): that event is the last one, so the program
// has taken all events of the connection.
func ConnOf(ev event.Event) *Conn {
	c, _ := ep.Of(ev).Context().(*Conn)
	switch {
	case ev.Number == event.DTOCompletion || c == nil:
	case ev.Ended():
		c.listener.leave(c)
	case ev.Op == hw.OpRecvImm:
		c.refill()
	}
	return c
}

// completeSend returns the buffer of a completed send to the pool.
func completeSend(source any, _ hw.Status, cookie uint64) {
	e, _ := source.(*ep.Endpoint)
	if c, _ := e.Context().(*Conn); c != nil {
		c.retire(cookie)
	}
}

// filterConn returns the buffers of receives without a message to the pool: of those that
// failed, which it keeps from the channel, and of those that a write with immediate data
// took. It also keeps back the ESTABLISHED event for which IA.Dial waits. It is a
// delivery.Filter.
func filterConn(source any, number event.Number, status hw.Status, cookie uint64, data any) bool {
	e, _ := source.(*ep.Endpoint)
	c, _ := e.Context().(*Conn)
	switch {
	case c == nil:
	case cookie&connCookie != 0 && c.pool != nil:
		switch {
		case status != hw.StatusSuccess:
			c.retire(cookie)
			return false
		case number == event.IBDTOEvent: // the bytes went elsewhere: see Message
			c.retire(cookie)
			c.missing.Add(1)
		}
		return true
	case number == event.Established:
		if private, _ := data.([]byte); private != nil {
			c.private.Store(&private)
		}
		if first := wentUp(c); first && c.up != nil {
			c.up <- struct{}{} // to the Dial that waits for it
			return false
		}
	case number.Stream() == event.StreamConnection:
		c.end(event.Event{Number: number, Source: source, Data: data})
	}
	return true
}

// Events is the channel on which the events of the connection come: receives, which
// carry messages; the program's own operations; and the end of the connection, which is
// the last event (see [event.Event.Ended]). A receive that brought no message makes no
// event, unless it brought the immediate data of an RDMA write (see [Conn.Message]). A
// connection that has ended still has its
// buffers and memory until the program closes it, or the listener that made it.
// Connections that one Listener made share its channel, unless ConnConfig.Apart is set.
// The channel stays open. When the connection or listener that it belongs to has been
// closed, or the adapter, the event [event.Closed] comes behind all others, once: of several goroutines that
// receive from the channel one gets it, and tells the others, as by a channel that it closes.
func (c *Conn) Events() <-chan event.Event {
	if c == nil {
		return nil
	}
	return c.events.C()
}

// Batches is Events for a connection with ConnConfig.Batches, nil for others: the same
// events, many at a time; [event.Closed] is alone in the last batch. The program calls Release for each batch when it has handled
// its events:
//
//	case batch := <-c.Batches():
//		for _, ev := range batch.Events() {
//			// as an event of Events
//		}
//		batch.Release()
func (c *Conn) Batches() <-chan *evd.Batch {
	if c == nil {
		return nil
	}
	return c.events.Batches()
}

// Dequeue takes at most len(buf) completions of a connection with ConnConfig.Queue, and returns
// how many; 0 when none has come. It never blocks, and polls the device or its sockets as
// [evd.Dispatcher.Dequeue] does, which says what a loop of it costs. A program that polls looks
// into Events from time to time, where the connection's end comes. A closed connection and one
// without ConnConfig.Queue are INVALID_HANDLE. DAT: dat_evd_dequeue.
func (c *Conn) Dequeue(buf []event.Event) (int, error) {
	if c == nil {
		return 0, closedConn("runtime.Conn.Dequeue")
	}
	return c.polled.Dequeue(buf)
}

// PZ is the zone of the connection's memory.
func (c *Conn) PZ() *mem.PZ {
	if c == nil {
		return nil
	}
	return c.pz
}

// Alloc makes a region of size bytes, zeroed and aligned to a page, in the connection's
// zone, for RDMA by this end, or by a peer that is told where the memory is. Free ends the
// region, and so does the close of the connection, its listener or its adapter: no peer
// reaches the memory any more. The memory itself is of the Go heap. It stays the program's
// as long as the program has a slice of it, and there is nothing to give back.
//
// A nil or closed connection is INVALID_HANDLE/EP; other errors are those of
// [mem.PZ.Alloc].
func (c *Conn) Alloc(size int, privileges hw.Privileges) (*mem.LMR, error) {
	const op = "runtime.Conn.Alloc"
	return region(c, op, func() (*mem.LMR, error) { return c.memory.Alloc(op, size, privileges) })
}

// Register makes a region of the program's memory in the connection's zone, so that
// connections with zones of their own can share that memory. Free or the connection's
// close ends the region, and leaves the memory to the program. A nil or closed connection
// is INVALID_HANDLE/EP; other errors are those of [mem.PZ.Register].
func (c *Conn) Register(buf []byte, privileges hw.Privileges) (*mem.LMR, error) {
	const op = "runtime.Conn.Register"
	return region(c, op, func() (*mem.LMR, error) { return c.memory.Register(op, buf, privileges) })
}

// region makes a region of a connection that is not closed.
func region(c *Conn, op string, do func() (*mem.LMR, error)) (*mem.LMR, error) {
	if c == nil {
		return nil, closedConn(op)
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed.Load() {
		return nil, closedConn(op)
	}
	return do()
}

// Private is the private data of the peer's request or of its accept. It is nil before
// the peer's data has come, and if the peer sent none.
func (c *Conn) Private() []byte {
	if c == nil {
		return nil
	}
	if p := c.private.Load(); p != nil {
		return *p
	}
	return nil
}

// String is the peer's address. For a connection that this end dialed it has the number
// of the dial, too, since connections to one address differ in nothing else:
// "127.0.0.1:7000 (dial 3)".
func (c *Conn) String() string {
	if c == nil {
		return "no connection"
	}
	return c.peer
}

// LogValue names the peer, the connection's ID and its state, for log/slog. It may be called at
// any time, like the LogValue of every handle.
func (c *Conn) LogValue() slog.Value {
	if c == nil {
		return slog.StringValue(c.String())
	}
	return slog.GroupValue(slog.String("peer", c.peer), slog.Uint64("id", c.id), slog.String("state", c.Endpoint.State().String()))
}
