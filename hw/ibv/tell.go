//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A tellPage is registered memory of a zone. It has one slot per connection, into which
// the connection's peer writes one byte when it ends the connection in order; see the
// package's documentation. Slot 0 is the source of this side's writes into its peers'
// places.
type tellPage struct {
	mem  []byte
	mr   *C.struct_gv_mr
	base uint64 // the address of its first byte in work requests
	free []uint16
}

const (
	tellPageSize = 4096
	tellSlot     = 4 // bytes: a word, for atomic loads
	told         = 1
)

// tellPlace is one connection's slot on a page.
type tellPlace struct {
	zone *zone
	page *tellPage
	slot uint16
}

// tellPlace reserves a place for a connection. It returns nil when a new page can't be
// had; then every end of the connection counts as orderly.
func (z *zone) tellPlace() *tellPlace {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, p := range z.pages {
		if n := len(p.free); n > 0 {
			slot := p.free[n-1]
			p.free = p.free[:n-1]
			return p.take(z, slot)
		}
	}
	p := z.newTellPage()
	if p == nil {
		return nil
	}
	z.pages = append(z.pages, p)
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return p.take(z, slot)
}

func (z *zone) newTellPage() *tellPage {
	mem, err := unix.Mmap(-1, 0, tellPageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil
	}
	p := &tellPage{mem: mem}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	access := C.uint32_t(C.GV_ACCESS_LOCAL_WRITE | C.GV_ACCESS_REMOTE_WRITE | C.GV_ACCESS_REMOTE_READ)
	if z.dev.transport.iwarp { // iWARP devices can't register under a chosen address
		p.base = uint64(at)
		p.mr = C.gd_register(z.dev.c, z.pd, C.uintptr_t(at), tellPageSize, access)
	} else {
		p.mr = C.gd_register_at(z.pd, C.uintptr_t(at), tellPageSize, 0, access)
	}
	if p.mr == nil {
		_ = unix.Munmap(mem)
		return nil
	}
	mem[0] = told
	for slot := tellPageSize/tellSlot - 1; slot > 0; slot-- {
		p.free = append(p.free, uint16(slot))
	}
	return p
}

func (p *tellPage) unmap(d *device) {
	C.gd_deregister(d.c, p.mr)
	_ = unix.Munmap(p.mem)
}

func (p *tellPage) word(slot uint16) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&p.mem[int(slot)*tellSlot]))
}

func (p *tellPage) take(z *zone, slot uint16) *tellPlace {
	p.word(slot).Store(0)
	return &tellPlace{zone: z, page: p, slot: slot}
}

// release returns the place to its page. A nil place has nothing to return.
func (t *tellPlace) release() {
	if t == nil {
		return
	}
	t.zone.mu.Lock()
	t.page.free = append(t.page.free, t.slot)
	t.zone.mu.Unlock()
}

// note is the key and the address under which the peer writes the place; a nil place
// has a zero note.
func (t *tellPlace) note() note {
	if t == nil {
		return note{}
	}
	return note{key: uint32(t.page.mr.rkey), addr: t.page.base + uint64(t.slot)*tellSlot}
}

// told reports whether the peer has written its byte.
func (t *tellPlace) told() bool { return t != nil && t.word().Load() != 0 }

func (t *tellPlace) word() *atomic.Uint32 { return t.page.word(t.slot) }

// tellPeer posts the write of one byte into the peer's place, and reports whether it
// did. Only the queue pair's owner calls it, since it advances sendPos.
func (q *queuePair) tellPeer(from *tellPlace, to note) bool {
	if from == nil || to.key == 0 {
		return false
	}
	var posted C.uint32_t
	errno := C.gd_post_told(q.c, C.uint64_t(from.page.base), from.page.mr.lkey, C.uint64_t(to.addr), C.uint32_t(to.key), &posted)
	q.sendPos = uint32(posted)
	return errno == 0
}

// askPeer posts a read of the peer's place into this side's, which told reads, and
// reports whether it did. It does so only when this side has no receive posted: only
// then may the peer's byte be stuck behind a send that waits for a receive.
func (q *queuePair) askPeer() bool {
	c := q.conn
	if c == nil || q.up.reads_out == 0 || C.gd_unready(q.c) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.place
	return p != nil && c.peer.key != 0 &&
		C.gd_ask(q.c, C.uint64_t(p.note().addr), p.page.mr.lkey, C.uint64_t(c.peer.addr), C.uint32_t(c.peer.key)) == 0
}
