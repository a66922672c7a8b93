//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"slices"
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
	i := slices.IndexFunc(z.pages, func(p *farewellPage) bool { return len(p.free) > 0 })
	if i < 0 {
		p := z.newFarewellPage()
		if p == nil {
			return nil
		}
		i, z.pages = len(z.pages), append(z.pages, p)
	}
	p := z.pages[i]
	last := len(p.free) - 1
	t := &farewellPlace{zone: z, page: p, slot: p.free[last]}
	p.free = p.free[:last]
	t.word().Store(0)
	return t
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

func (t *farewellPlace) word() *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&t.page.mem[int(t.slot)*farewellSlot]))
}

// farewells are those of the two ends of a connection, or of a pair.
type farewells struct {
	place *farewellPlace // for the peer's; nil: none
	peer  note           // where the peer wants this side's; zero: nowhere
	said  bool           // this side's was posted
}

// heard reports whether the peer has written its farewell.
func (f *farewells) heard() bool { return f.place != nil && f.place.word().Load() != 0 }

// say posts this side's farewell, from the page of the place, unless an earlier call did. It
// reports whether it posted one, and the queue pair's next position then. Only
// the queue pair's owner calls it, since it posts.
func (f *farewells) say(q *C.struct_gd_qp) (next uint32, sent bool) {
	if f.said || f.place == nil || f.peer.key == 0 {
		return 0, false
	}
	f.said = true
	var posted C.uint32_t
	p := f.place.page
	errno := C.gd_post_farewell(q, C.uint64_t(p.base), p.mr.lkey, C.uint64_t(f.peer.addr), C.uint32_t(f.peer.key), &posted)
	return uint32(posted), errno == 0
}

// sendFarewell posts the farewell of a connection or a pair, with mu held. See [farewells.say].
func (q *queuePair) sendFarewell() (next uint32, sent bool) {
	if q.conn == nil {
		return q.own.say(q.c)
	}
	q.conn.mu.Lock()
	defer q.conn.mu.Unlock()
	return q.conn.farewells.say(q.c)
}

// offerFarewell stores the farewell in this side's own place, from where the peer's
// fetchFarewell reads it, and takes the connection down.
func (c *conn) offerFarewell() {
	c.mu.Lock()
	if p := c.farewells.place; p != nil {
		p.word().Store(farewell)
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
	p, peer := c.farewells.place, c.farewells.peer
	return p != nil && peer.key != 0 &&
		C.gd_fetch_farewell(q, C.uint64_t(p.note().addr), p.page.mr.lkey, C.uint64_t(peer.addr), C.uint32_t(peer.key)) == 0
}
