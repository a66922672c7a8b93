//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync"
	"unsafe"

	"godat/hw"
)

// event is an event of the connection manager, in Go's memory.
type event struct {
	id                *C.struct_gc_id
	key, parent       uint64
	kind              C.int
	status            int
	readsIn, readsOut int
	private           []byte
}

// conn is an identifier of the connection manager's: an attempt to connect, a
// request that waits for an answer, or a connection.
type conn struct {
	// Immutable.
	dev     *device
	key     uint64
	passive bool

	events chan event    // to the goroutine that dials
	quit   chan struct{} // closed when the attempt is given up

	// Guarded by mu, which may be taken under a queue pair's.
	mu      sync.Mutex
	id      *C.struct_gc_id // nil when destroyed
	qp      *queuePair
	life    uint64 // of qp, that this is the connection of
	dialing bool   // a goroutine dials, and events are for it
	gaveUp  bool   // quit is closed
	gone    bool   // the peer of a request has left
	place   *tellPlace
	peer    note // where the peer wants to be told; zero: nowhere
	tailed  bool // the peer understands tails
	told    bool // the peer was told, or is being told, of an orderly end

	// What a goroutine that dials inherited from a queue pair that went on without
	// it: the device's queue pair, and what that uses.
	orphan *C.struct_gv_qp
	used   []*users
}

// eventRoom is more events than an attempt to connect can get.
const eventRoom = 16

// newConn makes a conn and its key. The identifier is made later, or is there.
func (d *device) newConn(id *C.struct_gc_id) *conn {
	c := &conn{dev: d, id: id, passive: id != nil, events: make(chan event, eventRoom), quit: make(chan struct{})}
	d.mu.Lock()
	c.key = d.key()
	d.conns[c.key] = c
	d.mu.Unlock()
	return c
}

// with calls f with the identifier, unless it is destroyed. f is short.
func (c *conn) with(f func(id *C.struct_gc_id)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id != nil {
		f(c.id)
	}
}

// destroy destroys the identifier and forgets the conn. It may block when somebody
// connects on it.
func (c *conn) destroy() {
	c.mu.Lock()
	id, place := c.id, c.place
	c.id, c.place = nil, nil
	c.mu.Unlock()
	c.dev.mu.Lock()
	delete(c.dev.conns, c.key)
	c.dev.mu.Unlock()
	if id != nil {
		C.gd_cm_disconnect(id) // what is not connected says so, and is destroyed
		C.gd_cm_destroy(id)
	}
	place.release()
}

// giveUp ends an attempt to connect, as soon as the kernel lets go of it, with mu
// held.
func (c *conn) giveUp() {
	if !c.gaveUp {
		c.gaveUp = true
		close(c.quit)
	}
}

// inherit ends the connection's use by a queue pair. While a goroutine is still at
// the attempt, that goroutine takes over the device's queue pair, and reports true.
func (c *conn) inherit(old *C.struct_gv_qp, q *queuePair) bool {
	c.mu.Lock()
	if c.dialing {
		c.giveUp()
		c.orphan, c.used = old, q.parts()
		for _, u := range c.used {
			u.leave()
		}
		c.mu.Unlock()
		return true
	}
	c.mu.Unlock()
	c.destroy()
	return false
}

// addresses are the two ends'.
func (c *conn) addresses() (local, remote address) {
	c.with(func(id *C.struct_gc_id) {
		var l, r C.struct_sockaddr_storage
		C.gd_cm_addresses(id, &l, &r)
		local, remote = address(addrPort(&l)), address(addrPort(&r))
	})
	return local, remote
}

// deliver takes an event from watch.
func (c *conn) deliver(e event) {
	c.mu.Lock()
	if c.dialing {
		select {
		case c.events <- e:
		default: // can't be; the attempt ends by its own means
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.handle(e)
}

// handle takes an event of a connection that nobody dials any more.
func (c *conn) handle(e event) {
	c.mu.Lock()
	q, life := c.qp, c.life
	switch e.kind {
	case C.GC_EVENT_DISCONNECTED, C.GC_EVENT_REJECTED, C.GC_EVENT_CONNECT_ERROR, C.GC_EVENT_UNREACHABLE, C.GC_EVENT_DEVICE_REMOVAL:
		c.gone = true
	}
	c.mu.Unlock()
	if q == nil {
		return // a request that nobody has answered yet
	}
	switch e.kind {
	case C.GC_EVENT_ESTABLISHED:
		q.established(life, c.info(e))
	case C.GC_EVENT_DISCONNECTED:
		q.hungUp(life)
	case C.GC_EVENT_REJECTED, C.GC_EVENT_CONNECT_ERROR, C.GC_EVENT_UNREACHABLE:
		q.lost(life, hw.ReasonBroken, eventCause(e))
	case C.GC_EVENT_DEVICE_REMOVAL:
		q.lost(life, hw.ReasonBroken, eventCause(e))
		c.dev.removed()
	}
}

// leaving says for a peer that asks that this end leaves in order, and takes the
// connection down.
func (c *conn) leaving() {
	c.mu.Lock()
	if c.place != nil {
		c.place.word().Store(told)
	}
	c.mu.Unlock()
	c.hangUp()
}

// reason says why a connection ended that the peer took down.
func (c *conn) reason() hw.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tailed || c.place == nil || c.place.told() {
		return hw.ReasonPeer // a peer that can't tell is taken to be orderly
	}
	return hw.ReasonBroken
}

// info describes the connection, for Established.
func (c *conn) info(e event) hw.ConnInfo {
	local, remote := c.addresses()
	info := hw.ConnInfo{Local: local, Remote: remote, ReadsIn: e.readsIn, ReadsOut: e.readsOut}
	if c.qp != nil {
		info.ReadsIn = int(c.qp.up.reads_in)
		info.ReadsOut = int(c.qp.up.reads_out)
	}
	return info
}

// notice takes a place for the peer to tell us at, if tails are in use.
func (c *conn) takePlace(z *zone) note {
	if !c.dev.transport.tail {
		return note{}
	}
	p := z.tellPlace()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place = p
	return p.note()
}

// hangUp tells the peer that the connection is over. A goroutine that still dials,
// or has just told that the connection is up, does it when it lets go.
func (c *conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.dialing:
		c.giveUp()
	case c.id != nil:
		C.gd_cm_disconnect(c.id)
	}
}

// bytesOf is a pointer to private data for the length of a call; nil for none.
func bytesOf(b []byte) (*C.uint8_t, C.int) {
	return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))), C.int(len(b))
}

// agree makes the numbers of outstanding reads what both sides can.
func (q *queuePair) agree(e event) {
	q.up.reads_in = min(C.uint8_t(q.cfg.ReadsIn), C.uint8_t(e.readsIn))
	q.up.reads_out = min(C.uint8_t(q.cfg.ReadsOut), C.uint8_t(e.readsOut))
}
