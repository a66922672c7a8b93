//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"context"
	"net/netip"
	"sync"
	"unsafe"

	"godat/hw"
)

// event is a copy, in Go's memory, of an event of the connection manager.
type event struct {
	id                *C.struct_gc_id
	kind              C.int
	status            int
	readsIn, readsOut int
	private           []byte
}

// conn is an identifier of the connection manager (rdma_cm_id): an attempt to connect,
// a request that waits for an answer, or a connection.
type conn struct {
	// Immutable.
	dev     *device
	key     uint64
	passive bool

	events chan event // from the watcher to the attempt's goroutine
	// giveUp makes that goroutine abandon the attempt, as soon as the kernel lets it: by ctx. It is
	// called with mu held.
	ctx    context.Context
	giveUp context.CancelFunc

	// Guarded by mu. A goroutine that holds a queue pair's mu may take it.
	mu      sync.Mutex
	id      *C.struct_gc_id // nil before the attempt makes it, and when destroyed
	qp      *queuePair
	life    uint64 // the life of qp to which this connection belongs
	dialing bool   // the attempt's goroutine runs, and events are for it
	gone    bool   // the peer has hung up, or the attempt has failed
	hungUp  bool   // this side has disconnected
	tailed  bool   // the peer understands tails

	farewells farewells

	// What the attempt's goroutine inherited from a queue pair that was closed or reset
	// during the attempt: the device's queue pair, and the parts that it still uses.
	orphan *C.struct_gv_qp
	used   parts
}

// eventRoom is more events than an attempt to connect can get.
const eventRoom = 16

// newConn makes a conn and its key. id is nil when an attempt will make the identifier.
func (d *device) newConn(id *C.struct_gc_id) *conn {
	c := &conn{dev: d, id: id, passive: id != nil, events: make(chan event, eventRoom)}
	c.ctx, c.giveUp = context.WithCancel(context.Background())
	c.key = enlist(d, d.conns, c)
	return c
}

// with calls f with the identifier, unless that is destroyed. f runs with mu held and
// does not block.
func (c *conn) with(f func(id *C.struct_gc_id)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != nil {
		f(c.id)
	}
}

// dropID destroys the identifier of an attempt that is about to make another.
func (c *conn) dropID() {
	c.mu.Lock()
	id := c.id
	c.id = nil
	c.mu.Unlock()
	C.gd_cm_destroy(id)
}

// destroy destroys the identifier and removes the conn from the device's table. It
// blocks while another goroutine is in rdma_connect on the identifier.
func (c *conn) destroy() {
	c.mu.Lock()
	id, place := c.id, c.farewells.place
	c.id, c.farewells.place = nil, nil
	c.mu.Unlock()
	unlist(c.dev, c.dev.conns, c.key)
	if id != nil {
		C.gd_cm_disconnect(id) // fails when there is no connection, which is harmless
		C.gd_cm_destroy(id)
	}
	place.release()
}

// inherit separates the connection from q, whose device's queue pair was old. While the
// attempt's goroutine still runs, that goroutine becomes responsible for destroying
// old, and inherit returns true; otherwise inherit destroys the identifier.
func (c *conn) inherit(old *C.struct_gv_qp, q *queuePair) bool {
	c.mu.Lock()
	if c.dialing {
		c.giveUp()
		c.orphan, c.used = old, q.parts
		c.used.each((*users).leave)
		c.mu.Unlock()
		return true
	}
	c.mu.Unlock()
	c.destroy()
	return false
}

// addresses are those of the two ends.
func (c *conn) addresses() (local, remote address) {
	c.with(func(id *C.struct_gc_id) {
		var l, r C.struct_sockaddr_storage
		C.gd_cm_addresses(id, &l, &r)
		local, remote = address(addrPort(&l)), address(addrPort(&r))
	})
	return local, remote
}

// between is a cause with the addresses of the two ends, as far as they are known.
func (c *conn) between(cause *hw.Cause) *hw.Cause {
	if local, remote := c.addresses(); netip.AddrPort(local).Addr().IsValid() {
		return cause.Between(local, remote)
	}
	return cause
}

// deliver hands an event to the attempt's goroutine while that runs, and otherwise
// handles it at once. The watcher's goroutine calls it.
func (c *conn) deliver(e event) {
	c.dev.watcher.own.Check()
	c.mu.Lock()
	if c.dialing {
		select {
		case c.events <- e:
		default: // can't happen, see eventRoom; without the event the owner's timeout ends the attempt
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.handle(e)
}

// handle acts on an event of a connection that is past dialing.
func (c *conn) handle(e event) {
	c.mu.Lock()
	q, life := c.qp, c.life
	switch e.kind {
	case C.GC_EVENT_DISCONNECTED, C.GC_EVENT_REJECTED, C.GC_EVENT_CONNECT_ERROR, C.GC_EVENT_UNREACHABLE, C.GC_EVENT_DEVICE_REMOVAL:
		c.gone = true
	case C.GC_EVENT_ESTABLISHED:
		if c.hungUp && c.id != nil {
			C.gd_cm_disconnect(c.id) // see hangUp
		}
	}
	c.mu.Unlock()
	if q == nil {
		return // the consumer has not answered this request yet
	}
	switch e.kind {
	case C.GC_EVENT_ESTABLISHED:
		q.established(life, c.info())
	case C.GC_EVENT_DISCONNECTED:
		q.hungUp(life)
	case C.GC_EVENT_REJECTED, C.GC_EVENT_CONNECT_ERROR, C.GC_EVENT_UNREACHABLE:
		q.lost(life, hw.ReasonBroken, eventCause(e))
	case C.GC_EVENT_DEVICE_REMOVAL:
		q.lost(life, hw.ReasonBroken, eventCause(e))
		c.dev.watcher.removed()
	}
}

// reason is why a connection that the peer took down has ended: orderly when the peer's
// farewell has come.
func (c *conn) reason() hw.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := &c.farewells; !c.tailed || f.place == nil || f.heard() {
		return hw.ReasonPeer // the end of a peer that sends no farewells counts as orderly
	}
	return hw.ReasonBroken
}

// info describes the connection, which has a queue pair, for Established.
func (c *conn) info() hw.ConnInfo {
	local, remote := c.addresses()
	q := c.qp
	q.mu.Lock() // its next life may begin meanwhile
	defer q.mu.Unlock()
	return hw.ConnInfo{Local: local, Remote: remote, ReadsIn: int(q.up.reads_in), ReadsOut: int(q.up.reads_out)}
}

// takePlace reserves the place for the peer's farewell, if tails are in use. The note
// goes to the peer.
func (c *conn) takePlace(z *zone) note {
	if !c.dev.transport.tail {
		return note{}
	}
	p := z.farewellPlace()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.farewells.place = p
	return p.note()
}

// hangUp disconnects. While the attempt's goroutine runs, even if the connection is up
// by then, hangUp leaves it to that goroutine to disconnect when it ends.
//
// An acceptor whose peer's messages have overtaken the peer's confirmation (RTU) may hang
// up before that comes. The connection manager then sends nothing and reports success,
// so handle disconnects once more when the event of the confirmation comes.
func (c *conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hungUp = true
	switch {
	case c.dialing:
		c.giveUp()
	case c.id != nil:
		C.gd_cm_disconnect(c.id)
	}
}

// bytesOf is a pointer to private data and its length, for the duration of one call.
func bytesOf(b []byte) (*C.uint8_t, C.int) {
	return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))), C.int(len(b))
}

// agree sets the numbers of outstanding reads to the most that both sides can do.
func (q *queuePair) agree(e event) {
	q.up.reads_in = min(C.uint8_t(q.cfg.ReadsIn), C.uint8_t(e.readsIn))
	q.up.reads_out = min(C.uint8_t(q.cfg.ReadsOut), C.uint8_t(e.readsOut))
}
