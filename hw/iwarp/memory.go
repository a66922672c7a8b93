package iwarp

import (
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
	free := soft.AwaitBeside(users, s.mayBlock, &s.link.token)
	s.resumed = s.resumed || free
	return free
}

// checkedByAccess reports whether an access to the first of n octets looks up the key of
// each segment, as Allows does: there is one segment, and at least one octet. The access
// follows at once, and its failure means the same to the program.
func checkedByAccess(sgl []hw.SGE, n uint64) bool { return len(sgl) == 1 && n > 0 }

// remoteFault is the error of a peer's reference to memory, in RDMAP's words, or nil. need is
// a remote privilege.
func remoteFault(v *soft.View, addr uint64, n, key uint32, need hw.Privileges) *wire.Error {
	if v.Reach(addr, n, key, need) != nil {
		return nil
	}
	r := v.Keys.Lookup(key)
	switch {
	case r.Priv&soft.Remote == 0:
		return wire.ErrSTag
	case !v.Within(r.Zone):
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
	case wire.ErrAccess:
		return wire.ErrTaggedAccess
	}
	return wire.ErrTaggedSTag
}
