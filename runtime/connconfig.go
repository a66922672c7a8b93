package runtime

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime/trace"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
)

// ConnConfig says what a connection, or each connection of a listener, is made of. The
// zero value is good for 16 messages of 4 KiB at a time.
type ConnConfig struct {
	// Depth is how many unanswered messages a peer may have outstanding, and how many
	// this end may. Both ends use the same number; an end whose peer has a smaller one
	// keeps to the smaller. Receives, requests, reads, buffers and places for events all
	// follow from it. 0 means 16. A program may send Depth messages before it receives
	// the first answer, without counting; one that sends more counts what the peer has room for, because a
	// message that finds no receive breaks the connection, unless the device waits: as
	// InfiniBand does, and loop with the parameter notready=wait (see [godat/hw/loop]).
	// It is 65 536 at most, and no more than half of the requests that an endpoint of the device may have outstanding.
	Depth int
	// Message is the length of the longest message, and the size of a buffer, in
	// bytes; 0 means 4096. All buffers of a connection, 4*Depth, are in one region.
	Message int

	// Timeout bounds Dial, the adapter's and a listener's, from the call until the
	// connection is up: then the connection ends with TIMED_OUT, which is the error of
	// [IA.Dial]. A shorter context ends an IA.Dial earlier. 0 means 30 seconds; a
	// negative Timeout means no bound but the provider's own.
	Timeout time.Duration

	// Private is the private data of a Dial's request; Accept and Listener.Dial have it
	// as an argument. Private data that Setup returns replaces it.
	Private []byte
	// PZ is the zone of the connection, for programs whose connections share memory.
	// nil gives each connection a zone of its own, so that no peer reaches the memory
	// of another's connection.
	PZ *mem.PZ
	// Privileges are those of the buffers; 0 means that no peer reaches them by RDMA.
	Privileges hw.Privileges
	// Attr has further attributes of the endpoint; nil means the defaults. MaxRecvDTOs,
	// MaxRequestDTOs, MaxReadIn and MaxReadOut follow from Depth where they are 0: the
	// reads are Depth, or as many as the device has if that is less. A MaxRecvDTOs below Depth, a
	// MaxMessageSize below Message and messages without a segment are INVALID_PARAMETER, unless
	// OwnReceives is set. With NoDTOs as MaxRequestDTOs this end sends nothing.
	Attr *ep.Attr
	// Setup, if set, is called for each connection before it is made, and so before the
	// peer may send. It may post further receives, set Context, and allocate memory
	// ([Conn.Alloc]). What it returns is the private data for the peer, such as where
	// that memory is; nil leaves the private data that Private, Accept or Listener.Dial
	// gives. An error ends the attempt, and so does a panic, which goes on to the caller of
	// Accept or Dial. Close, Stop and Shutdown of the listener, which would wait for it, are
	// INVALID_STATE there. Elsewhere they wait for it for 5 seconds.
	Setup func(*Conn) (private []byte, err error)

	// Established, if set, is called when a connection is up, and Ended once for each that
	// Accept or a Dial began, when it ends: with the event of the end, or with [event.Closed] if the
	// adapter's close ended a connection that was up. The library calls them before the
	// program can take the event of that, in the middle of the connection's work, each in a
	// goroutine of its own: so they must not block, and of the connection they may call only what
	// reads, such as ID, RemoteAddr and Context. Close, Shutdown and Stop of a connection, a
	// listener or the adapter, and Dial, are INVALID_STATE there. A panic in them is logged, and
	// changes nothing. The connection goes on without a hook that has not returned for 5 seconds,
	// which is logged, too.
	Established func(*Conn)
	Ended       func(*Conn, event.Event)

	// Conns is the most connections of a listener at a time; the listener rejects
	// further ones with Refusal. There may be 2^20 with Apart. Without it they share the 2^20
	// places for events of one channel, of which each needs up to 3*Depth + 17, or more if Attr asks
	// for it: there may be 18 396 of Depth 16, and 2 614 of Depth 128. 0 means 128, or
	// as many as there may be if that is less. A connection has its place from Accept or
	// Listener.Dial until the program has taken the event of its end, by ConnOf or
	// Receive, or has closed it. Its memory stays until Close.
	Conns int
	// Refusal is the private data for a peer that a listener rejects: because Accept
	// failed, or because nobody had accepted the request when the listener or the adapter
	// was closed.
	Refusal []byte
	// Apart gives each connection of a listener a channel of its own.
	Apart bool
	// Batches brings the events on the channel [Conn.Batches], many at a time, and none
	// on Events. It costs a server that has many messages under way less.
	Batches bool
	// Queue leaves the completions of what the program posts in a queue of the connection's own,
	// from which [Conn.Dequeue] takes them; events of the connection itself come as without it,
	// the last one behind all completions. It is for a program whose goroutine polls, and spends
	// a processor on it. It needs OwnReceives.
	Queue bool
	// OwnReceives makes a connection without buffers, for a program that gives each
	// message a place in memory of its own. The program posts the receives to Endpoint,
	// Attr.MaxRecvDTOs of them or else Depth, the first ones in Setup, and posts its sends
	// there, too. It chooses all cookies, and has an event of each send that it does not
	// suppress. Message and Privileges mean nothing; Buffer and Message return nil.
	OwnReceives bool

	// Debug lets the connections watch over their buffers: see
	// [mem.BufferPoolConfig.Debug].
	Debug bool

	batch int // receives that are posted at a time
}

const (
	defaultDepth   = 16
	defaultMessage = 4096
	defaultConns   = 128
	defaultTimeout = 30 * time.Second
	mostDepth      = 1 << 16
)

// complete fills in the defaults and checks the rest.
func (cfg *ConnConfig) complete(op string, dev hw.Attr) error {
	cfg.Depth = cmp.Or(cfg.Depth, defaultDepth)
	cfg.Message = cmp.Or(cfg.Message, defaultMessage)
	cfg.Timeout = max(cmp.Or(cfg.Timeout, defaultTimeout), 0)
	attr := ep.Attr{}
	if cfg.Attr != nil {
		attr = *cfg.Attr
	}
	most := min(mostDepth, dev.MaxDepth)
	if attr.MaxRequestDTOs == 0 {
		most = min(mostDepth, dev.MaxDepth/requestsPerDepth)
	}
	switch {
	case cfg.Depth < 0 || cfg.Depth > most:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "ConnConfig.Depth is %d; on this device it may be 1 to %d", cfg.Depth, most)
	case cfg.Message < 0 || uint64(cfg.Message) > dev.MaxMessage:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "ConnConfig.Message is %d; this device sends 1 to %d bytes", cfg.Message, dev.MaxMessage)
	case cfg.Queue && !cfg.OwnReceives:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "ConnConfig.Queue without OwnReceives: messages in buffers come by Events or Batches")
	}
	cfg.batch = 1 // a program that sets MaxRecvDTOs may need all of them
	if attr.MaxRecvDTOs == 0 && !cfg.OwnReceives {
		cfg.batch = max(1, min(cfg.Depth/2, mostAtOnce, dev.MaxDepth-cfg.Depth+1))
	}
	if dev.Strict {
		attr.ReceiverNotReady = cmp.Or(attr.ReceiverNotReady, -1)
	}
	attr.MaxRecvDTOs = cmp.Or(attr.MaxRecvDTOs, cfg.receives())
	attr.MaxRequestDTOs = cmp.Or(attr.MaxRequestDTOs, requestsPerDepth*cfg.Depth)
	attr.MaxReadIn = cmp.Or(attr.MaxReadIn, min(cfg.Depth, dev.MaxReadsIn))
	attr.MaxReadOut = cmp.Or(attr.MaxReadOut, min(cfg.Depth, dev.MaxReadsOut))
	cfg.Attr = &attr
	if err := cfg.checkAttr(op, dev); err != nil {
		return err
	}
	if need := cfg.places(); need > evd.MaxQLen {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "at Depth %d and with this Attr a connection may have %d events waiting; the most is %d", cfg.Depth, need, evd.MaxQLen)
	}
	return nil
}

// checkAttr checks that the endpoint can have Attr, and that the buffers fit it.
func (cfg *ConnConfig) checkAttr(op string, dev hw.Attr) error {
	attr, err := cfg.Attr.Resolve(door.Key{}, op, dev)
	var e *hw.Error
	if errors.As(err, &e) {
		e.Sub = hw.NoSubtype // which numbers the argument of another call
	}
	if err != nil || cfg.OwnReceives {
		return err
	}
	wrong := func(format string, values ...any) error {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, format, values...)
	}
	memory, region := uint64(buffersPerDepth*cfg.Depth)*uint64(cfg.Message), min(dev.MaxMR, math.MaxInt)
	switch {
	case cfg.Privileges&^(hw.AllPrivileges|hw.RemoteAtomic) != 0:
		return wrong("ConnConfig.Privileges is %v; there are %v alone", cfg.Privileges, hw.AllPrivileges|hw.RemoteAtomic)
	case memory > region:
		return wrong("ConnConfig.Depth is %d and Message %d, which needs %d bytes for buffers; a region of this device has up to %d", cfg.Depth, cfg.Message, memory, region)
	case attr.MaxRecvDTOs < cfg.Depth:
		return wrong("ConnConfig.Depth is %d and Attr.MaxRecvDTOs %d: each message of Depth needs a receive", cfg.Depth, attr.MaxRecvDTOs)
	case attr.MaxRecvIOV < 1:
		return wrong("ConnConfig.Depth is %d and Attr.MaxRecvIOV %d: each message of Depth needs a receive with a segment", cfg.Depth, attr.MaxRecvIOV)
	case attr.MaxRequestDTOs > 0 && attr.MaxRequestIOV < 1:
		return wrong("ConnConfig.Message is %d and Attr.MaxRequestIOV %d: a message that is sent needs a segment", cfg.Message, attr.MaxRequestIOV)
	case attr.MaxMessageSize < uint64(cfg.Message):
		return wrong("ConnConfig.Message is %d and Attr.MaxMessageSize %d: the endpoint would refuse a message of a whole buffer", cfg.Message, attr.MaxMessageSize)
	}
	return nil
}

// completeConns fills in how many connections a listener takes, and checks that the channel
// of all has a place for each event of theirs.
func (cfg *ConnConfig) completeConns(op string) error {
	most, mend := evd.MaxQLen, ""
	if !cfg.Apart {
		most /= cfg.places()
		mend = "; with Apart, which gives each a channel of its own, more"
	}
	cfg.Conns = cmp.Or(cfg.Conns, min(defaultConns, most))
	if cfg.Conns < 0 || cfg.Conns > most {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "ConnConfig.Conns is %d; at Depth %d there may be 1 to %d%s", cfg.Conns, cfg.Depth, most, mend)
	}
	return nil
}

const (
	// requestsPerDepth counts, for each message of Depth, the answer and an RDMA
	// operation.
	requestsPerDepth = 2
	// buffersPerDepth counts, for each message of Depth, the buffer of a posted receive,
	// those of the requests that may be outstanding, and one that the program may have.
	// So a peer that waits for answers always finds a receive, even if an answer reaches
	// it before this end knows that the answer was sent. The receives beyond Depth are
	// posted only as long as there are buffers for them.
	buffersPerDepth = 1 + requestsPerDepth + 1
)

// receives is how many receives a connection has: those that refill waits for, and Depth.
func (cfg *ConnConfig) receives() int { return cfg.Depth + cfg.batch - 1 }

// places is how many events of a connection may wait at a time.
func (cfg *ConnConfig) places() int {
	recvs, requests := cfg.Depth, requestsPerDepth*cfg.Depth
	if cfg.Attr != nil {
		recvs, requests = max(recvs, min(cfg.Attr.MaxRecvDTOs, evd.MaxQLen)), max(requests, min(cfg.Attr.MaxRequestDTOs, evd.MaxQLen))
	}
	return recvs + requests + 2 // its beginning and its end
}

// newEvents makes the dispatcher of a connection, or of a listener, with places for the
// events of conns connections.
func (cfg *ConnConfig) newEvents(ia *IA, conns int, owner any) (*evd.Dispatcher, error) {
	mode := evd.ModeChannel
	if cfg.Batches {
		mode = evd.ModeBatch
	}
	return ia.newDispatcher(evd.Config{Mode: mode, QLen: conns * cfg.places()}, func(d *delivery.Dispatcher) {
		d.EndWith(event.Event{Number: event.Closed, Source: owner})
		if conns == 1 {
			d.OfOne()
		}
		d.SetFilter(filterConn)
		d.FilterFailures()    // of connCookie
		if !cfg.OwnReceives { // whose cookies may be any
			d.FuncRoute(sendCookie, sendCookie, completeSend)
		}
	})
}

// newConn returns a connection that has no parts yet. Its events go to the listener's
// channel if there is one, and otherwise to a channel of its own.
func newConn(ia *IA, cfg *ConnConfig, l *Listener, peer string, private []byte) *Conn {
	c := &Conn{ia: ia, id: connIDs.Add(1), cfg: *cfg, pz: cfg.PZ, listener: l, peer: peer, ended: make(chan struct{}), gone: make(chan struct{})}
	if l != nil {
		c.events = l.events
	} else {
		c.up = make(chan struct{}, 1)
	}
	if trace.IsEnabled() {
		var ctx context.Context
		ctx, c.task = trace.NewTask(context.Background(), "godat.Conn")
		trace.Log(ctx, "peer", peer)
	}
	if private != nil {
		c.private.Store(&private)
	}
	return c
}

// ownEvents is whether a connection's events come to a dispatcher of its own.
func ownEvents(c *Conn) bool { return c.listener == nil || c.listener.events == nil }

// begin makes the parts of the connection, posts all receives, and then calls connect
// with the private data for the peer. On an error it gives everything back, and so if Setup
// or the library panics.
func (c *Conn) begin(op string, told []byte, connect func(told []byte) error) error {
	returned := false
	defer func() {
		if !returned {
			_ = c.Close()
		}
	}()
	err := c.make(op)
	if err == nil && c.cfg.Setup != nil {
		var own []byte
		if own, err = c.setUp(); own != nil {
			told = own
		}
	}
	if err == nil {
		err = connect(told)
	}
	returned = true
	if err != nil {
		return c.ia.gate.orClosed(op, errors.Join(err, c.Close()))
	}
	return nil
}

// make makes what the connection is made of, unless its listener has closed it meanwhile. The listener's close waits
// for make.
func (c *Conn) make(op string) (err error) {
	c.closing.Lock()
	defer c.closing.Unlock()
	if c.closed.Load() {
		return closedConn(op)
	}
	ia, cfg := c.ia, &c.cfg
	if ownEvents(c) {
		if c.events, err = cfg.newEvents(ia, 1, c); err != nil {
			return err
		}
	}
	if c.pz == nil {
		if c.pz, err = ia.NewPZ(); err != nil {
			return err
		}
	}
	c.memory.In(door.Key{}, c.pz)
	if !cfg.OwnReceives {
		c.pool, err = c.pz.NewBufferPool(mem.BufferPoolConfig{
			Count: buffersPerDepth * cfg.Depth, Size: cfg.Message, Privileges: cfg.Privileges, Debug: cfg.Debug,
		})
		if err != nil {
			return err
		}
		c.buffers = c.pool.Own(door.Key{}, cfg.Depth)
		c.piece, c.step = pieces(c.pool, cfg.Message)
	}
	completions := c.events
	if cfg.Queue {
		c.polled, err = ia.newDispatcher(evd.Config{Mode: evd.ModeQueue, QLen: cfg.places()}, func(*delivery.Dispatcher) {})
		if err != nil {
			return err
		}
		completions = c.polled
	}
	c.Endpoint, err = ia.NewEndpoint(ep.Config{
		PZ: c.pz, Recv: completions, Request: completions, Conn: c.events, Attr: cfg.Attr, EndIsLast: true, Context: c,
	})
	if err != nil {
		return err
	}
	c.own = c.Endpoint.Own(door.Key{})
	c.outbox = c.own.NewOutbox(max(cfg.Attr.MaxRequestDTOs, 1), c.retire) // with NoDTOs, each Flush says that there is no room
	if !cfg.OwnReceives {
		c.own.Reserve()
		c.missing.Store(int32(cfg.receives()))
		c.receiveMissing()
	}
	return nil
}
