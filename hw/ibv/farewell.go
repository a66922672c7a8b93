//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A farewell is one byte, which an end of a connection writes into its peer's memory when
// it ends the connection in order; see the package's documentation.

// A farewellPage is registered memory of a zone. It has one slot per connection, for the
// peer's farewell. Slot 0 is the source of this side's farewells.
type farewellPage struct {
	mem  []byte
	mr   *C.struct_gv_mr
	base uint64 // the address of its first byte in work requests
	free []uint16
}

const (
	farewellPageSize = 4096
	farewellSlot     = 4 // bytes: a word, for atomic loads
	farewell         = 1
)

// farewellPlace is one connection's slot on a page.
type farewellPlace struct {
	zone *zone
	page *farewellPage
	slot uint16
}

// farewellPlace reserves a place for a connection. It returns nil when a new page can't be
// had; then every end of the connection counts as orderly.
func (z *zone) farewellPlace() *farewellPlace {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, p := range z.pages {
		if n := len(p.free); n > 0 {
			slot := p.free[n-1]
			p.free = p.free[:n-1]
			return p.take(z, slot)
		}
	}
	p := z.newFarewellPage()
	if p == nil {
		return nil
	}
	z.pages = append(z.pages, p)
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return p.take(z, slot)
}

func (z *zone) newFarewellPage() *farewellPage {
	mem, err := unix.Mmap(-1, 0, farewellPageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	p := &farewellPage{mem: mem}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	access := C.uint32_t(C.GV_ACCESS_LOCAL_WRITE | C.GV_ACCESS_REMOTE_WRITE | C.GV_ACCESS_REMOTE_READ)
	if z.dev.transport.iwarp { // iWARP devices can't register under a chosen address
		p.base = uint64(at)
		p.mr = C.gd_register(z.dev.c, z.pd, C.uintptr_t(at), farewellPageSize, access)
	} else {
		p.mr = C.gd_register_at(z.pd, C.uintptr_t(at), farewellPageSize, 0, access)
	}
	if p.mr == nil {
		_ = unix.Munmap(mem)
		return nil
	}
	mem[0] = farewell
	for slot := farewellPageSize/farewellSlot - 1; slot > 0; slot-- {
		p.free = append(p.free, uint16(slot))
	}
	return p
}

func (p *farewellPage) unmap(d *device) {
	C.gd_deregister(d.c, p.mr)
	_ = unix.Munmap(p.mem)
}

func (p *farewellPage) word(slot uint16) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&p.mem[int(slot)*farewellSlot]))
}

func (p *farewellPage) take(z *zone, slot uint16) *farewellPlace {
	p.word(slot).Store(0)
	return &farewellPlace{zone: z, page: p, slot: slot}
}

// release returns the place to its page. A nil place has nothing to return.
func (t *farewellPlace) release() {
	if t == nil {
		return
	}
	t.zone.mu.Lock()
	t.page.free = append(t.page.free, t.slot)
	t.zone.mu.Unlock()
}

// note is the key and the address under which the peer writes the place; a nil place
// has a zero note.
func (t *farewellPlace) note() note {
	if t == nil {
		return note{}
	}
	return note{key: uint32(t.page.mr.rkey), addr: t.page.base + uint64(t.slot)*farewellSlot}
}

// filled reports whether the peer has written its farewell.
func (t *farewellPlace) filled() bool { return t != nil && t.word().Load() != 0 }

func (t *farewellPlace) word() *atomic.Uint32 { return t.page.word(t.slot) }

// sendFarewell posts the farewell of a connection or a pair, with mu held. See
// [conn.sendFarewell].
func (q *queuePair) sendFarewell() (next uint32, sent bool) {
	if q.conn != nil {
		return q.conn.sendFarewell(q.c)
	}
	return q.own.sendFarewell(q.c)
}

// sendFarewell posts the farewell on the connection's queue pair, unless an earlier call
// did. It reports whether it posted one, and the queue pair's next position then. Only
// the queue pair's owner calls it, since it posts.
func (c *conn) sendFarewell(q *C.struct_gd_qp) (next uint32, sent bool) {
	c.mu.Lock()
	from, to, again := c.place, c.peer, c.farewellSent
	c.farewellSent = true
	c.mu.Unlock()
	if again {
		return 0, false
	}
	return from.sendFrom(q, to)
}

// sendFrom posts a farewell from the place's page to the peer's place, if both exist.
func (t *farewellPlace) sendFrom(q *C.struct_gd_qp, to note) (next uint32, sent bool) {
	if t == nil || to.key == 0 {
		return 0, false
	}
	var posted C.uint32_t
	errno := C.gd_post_farewell(q, C.uint64_t(t.page.base), t.page.mr.lkey, C.uint64_t(to.addr), C.uint32_t(to.key), &posted)
	return uint32(posted), errno == 0
}

// offerFarewell stores the farewell in this side's own place, from where the peer's
// fetchFarewell reads it, and takes the connection down.
func (c *conn) offerFarewell() {
	c.mu.Lock()
	if c.place != nil {
		c.place.word().Store(farewell)
	}
	c.mu.Unlock()
	c.hangUp()
}

// fetchFarewell posts a read of the peer's farewell, from the peer's own place, where the
// peer's offerFarewell stores it, into this side's place, and reports whether it did. It
// does so only when this side has no receive posted: only then may the peer's write be
// stuck behind a send that waits for a receive.
func (c *conn) fetchFarewell(q *C.struct_gd_qp) bool {
	if !C.gd_look(q).unready {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.place
	return p != nil && c.peer.key != 0 &&
		C.gd_fetch_farewell(q, C.uint64_t(p.note().addr), p.page.mr.lkey, C.uint64_t(c.peer.addr), C.uint32_t(c.peer.key)) == 0
}
