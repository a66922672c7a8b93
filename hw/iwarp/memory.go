package iwarp

import (
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/token"
)

// The two halves of a connection access memory, each by itself: the sender while its token
// is held and not parked, and the placer while touch is odd. Both write that word before
// they look a key up.
var (
	_ soft.Accessor = (*sender)(nil)
	_ soft.Accessor = (*placer)(nil)
)

// InProgress implements [soft.Accessor].
func (s *sender) InProgress() (w uint64, busy bool) {
	w = s.link.token.Load()
	return w, w&token.Held != 0
}

// Over implements [soft.Accessor].
func (s *sender) Over(w uint64) bool { return s.link.token.MovedOn(w) }

// InProgress implements [soft.Accessor].
func (p *placer) InProgress() (touch uint64, busy bool) {
	touch = p.touch.Load()
	return touch, touch&1 != 0
}

// Over implements [soft.Accessor].
func (p *placer) Over(touch uint64) bool { return p.touch.Load() != touch }

// invalidate invalidates a remote key on the peer's behalf, and waits until no access
// through it is in progress. The placer itself touches no memory meanwhile.
func (p *placer) invalidate(key uint32) bool {
	p.own.Check()
	q := p.link.qp
	if !p.link.dev.Invalidate(&q.QP, key) {
		return false
	}
	q.Zone.Await()
	return true
}

// awaitUsers waits until no access through a key of the zone that has died is in progress. It
// returns false if it would have to wait and the holder may not, because it is not the
// writer. While it waits it touches no memory and counts steps in the token's word, so that
// two that wait for each other both go on. Therefore the keys of the pieces in the outbox are
// looked up again (resumed) before the next write.
func (s *sender) awaitUsers() bool {
	s.link.token.Check()
	users := s.link.qp.Zone.InProgress(s, s.users[:0])
	s.users = users
	defer clear(users) // the connections may end
	for i := range users {
		for spin := 0; !users[i].Over(); spin++ {
			if !s.mayBlock {
				return false
			}
			s.resumed = true
			s.link.token.Step()
			soft.Pause(spin)
		}
	}
	s.resumed = true
	return true
}

// access looks up the memory that a queue pair may reach.
type access struct{ view soft.View }

// reach returns the n bytes at addr, or nil if the key is dead or does not allow the
// access. n is not 0. The caller holds the token, or has made touch odd; after it next
// steps or makes touch even it looks the key up again, because Deregister waits only
// until then.
func (a *access) reach(addr uint64, n, key uint32, need hw.Privileges) []byte {
	p := a.view.Reach(addr, n, key, need)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

// allows reports whether all segments can be reached. An empty segment always can.
func (a *access) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && a.reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// checkedByAccess reports whether an access to the first of n octets looks up the key of
// each segment, as allows does: there is one segment, and at least one octet. The access
// follows at once, and its failure means the same to the program.
func checkedByAccess(sgl []hw.SGE, n uint64) bool { return len(sgl) == 1 && n > 0 }

// remoteFault is the error of a peer's reference to memory, in RDMAP's words, or nil. need is
// a remote privilege.
func (a *access) remoteFault(addr uint64, n, key uint32, need hw.Privileges) *wire.Error {
	if a.view.Reach(addr, n, key, need) != nil {
		return nil
	}
	r := a.view.Keys.Lookup(key)
	switch {
	case r.Priv&soft.Remote == 0:
		return wire.ErrSTag
	case !a.view.Within(r.Zone):
		return wire.ErrStream
	case r.Priv&need != need:
		return wire.ErrAccess
	}
	if off := addr - r.Addr; off > r.Size || uint64(n) > r.Size-off {
		return wire.ErrBounds
	}
	return nil
}

// tagged turns the error of a reference into DDP's words. DDP has one code for two of
// RDMAP's.
func tagged(e *wire.Error) *wire.Error {
	switch e {
	case wire.ErrStream:
		return wire.ErrTaggedStream
	case wire.ErrBounds:
		return wire.ErrTaggedBounds
	}
	return wire.ErrTaggedSTag
}

// total is the sum of the segments' lengths.
func total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// cursor is a position in a list of segments.
type cursor struct {
	sgl  []hw.SGE
	off  uint32 // offset in the first of sgl
	need hw.Privileges
}

// next returns the bytes at the cursor up to the end of their segment, at most n of
// them and at least one; nil if they can't be reached. The cursor is not at the end of
// its list.
func (a *access) next(c *cursor, n int) []byte {
	for c.off == c.sgl[0].Len { // skips empty segments too
		c.sgl, c.off = c.sgl[1:], 0
	}
	s := &c.sgl[0]
	mem := a.reach(s.Addr, s.Len, s.LKey, c.need)
	if mem == nil {
		return nil
	}
	mem = mem[c.off:]
	return mem[:min(n, len(mem))]
}

// skip moves the cursor on by n of the bytes that next returned.
func (c *cursor) skip(n int) {
	if n == 0 {
		return
	}
	for c.off == c.sgl[0].Len {
		c.sgl, c.off = c.sgl[1:], 0
	}
	c.off += uint32(n)
}
