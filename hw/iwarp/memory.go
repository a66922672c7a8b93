package iwarp

import (
	"runtime"
	"time"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// invalidate kills a remote key on the peer's behalf, and waits until nobody uses it.
func (r *receiver) invalidate(key uint32) bool {
	r.own.Check()
	if !r.link.dev.Invalidate(&r.link.qp.QP, key) {
		return false
	}
	r.link.dev.grace(r)
	return true
}

// inUse is a connection that may be using memory, and its words at that time.
type inUse struct {
	c           *connection
	word, touch uint64
}

// inProgress appends to all the connections that may be using memory, but for a
// receiver and a sender.
func (d *device) inProgress(receiver *receiver, sender *sender, all []inUse) []inUse {
	d.connsMu.Lock()
	defer d.connsMu.Unlock()
	for c := range d.conns {
		u := inUse{c, c.word.Load(), c.recv.touch.Load()}
		if &c.send == sender {
			u.word = 0
		}
		if &c.recv == receiver {
			u.touch = 0
		}
		if u.word&held != 0 || u.touch&1 != 0 {
			all = append(all, u)
		}
	}
	return all
}

// ended reports whether what was in progress has ended.
func (u *inUse) ended() bool {
	return (u.word&held == 0 || u.c.movedOn(u.word)) && (u.touch&1 == 0 || u.c.recv.touch.Load() != u.touch)
}

// grace waits until nothing that was in progress when it was called still is.
// The key was removed before the words are read here, and a connection writes its
// word before it looks a key up: so a connection that is seen idle here finds the key
// dead. receiver is the caller's, if that is one: it touches nothing meanwhile.
func (d *device) grace(receiver *receiver) {
	for _, u := range d.inProgress(receiver, nil, nil) {
		for spin := 0; !u.ended(); spin++ {
			pause(spin)
		}
	}
}

// awaitUsers is grace for the token's holder. It returns false if it would have to
// wait and the holder may not, since it is not the writer. While it waits it counts
// steps, as one that touches nothing: two that wait for each other go on. So the keys
// of what is in the outbox are looked up again before it is written.
func (s *sender) awaitUsers() bool {
	s.link.own.Check()
	users := s.link.dev.inProgress(nil, s, s.users[:0])
	s.users = users
	defer clear(users) // the connections may end
	for _, u := range users {
		for spin := 0; !u.ended(); spin++ {
			if !s.mayBlock {
				return false
			}
			s.resumed = true
			s.link.moved()
			pause(spin)
		}
	}
	s.resumed = true
	return true
}

// pause passes the time of a copy.
func pause(spin int) {
	if spin < 100 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}

// access looks memory up, as a queue pair may reach it.
type access struct{ view soft.View }

// reach returns the n bytes at addr, or nil if the key is dead or does not allow
// it. The caller holds the token, or has made touch odd, and looks the key up again
// after the next step: Deregister waits for that. n is not 0.
func (a *access) reach(addr uint64, n, key uint32, need hw.Privileges) []byte {
	p := a.view.Reach(addr, n, key, need)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

// allows reports whether all segments can be reached. An empty one always can.
func (a *access) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && a.reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// remoteFault is what is wrong with a peer's reference to memory, in RDMAP's words, or
// nil.
func (a *access) remoteFault(addr uint64, n, key uint32, need hw.Privileges) *wire.Error {
	r := a.view.Keys.Lookup(key)
	switch {
	case r.Priv&soft.Remote == 0:
		return wire.ErrSTag
	case r.Zone != a.view.Zone && r.Zone != a.view.Scope:
		return wire.ErrStream
	case r.Priv&need != need:
		return wire.ErrAccess
	}
	if off := addr - r.Addr; off > r.Size || uint64(n) > r.Size-off {
		return wire.ErrBounds
	}
	return nil
}

// tagged is the fault of a reference in DDP's words, which has one word for two of
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

// total is the sum of the segments.
func total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// cursor is a place in a list of segments.
type cursor struct {
	sgl  []hw.SGE
	off  uint32 // in the first of sgl
	need hw.Privileges
}

// next returns the bytes at the cursor up to the end of their segment, at most n of
// them and at least one; nil if they can't be reached. The cursor is not at the end of
// its list.
func (a *access) next(c *cursor, n int) []byte {
	for c.off == c.sgl[0].Len { // an empty segment, too
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

// skip moves the cursor on by n bytes that next has found.
func (c *cursor) skip(n int) {
	if n == 0 {
		return
	}
	for c.off == c.sgl[0].Len {
		c.sgl, c.off = c.sgl[1:], 0
	}
	c.off += uint32(n)
}
