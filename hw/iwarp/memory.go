package iwarp

import (
	"runtime"
	"time"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// invalidate kills a remote key on the peer's behalf, and waits for who may be
// using it.
func (l *life) invalidate(key uint32) bool {
	if !l.dev.Invalidate(&l.qp.QP, key) {
		return false
	}
	l.dev.grace(l)
	return true
}

// busy is a connection in the middle of something, and its words at that time.
type busy struct {
	l        *life
	send, rx uint64
}

// inProgress appends to all what is in progress, but for a receiver and a holder.
func (d *device) inProgress(receiver, holder *life, all []busy) []busy {
	d.livesMu.Lock()
	defer d.livesMu.Unlock()
	for l := range d.lives {
		b := busy{l, l.word.Load(), l.touch.Load()}
		if l == holder {
			b.send = 0
		}
		if l == receiver {
			b.rx = 0
		}
		if b.send&held != 0 || b.rx&1 != 0 {
			all = append(all, b)
		}
	}
	return all
}

// over reports whether what was in progress has ended.
func (b *busy) over() bool {
	return (b.send&held == 0 || b.l.movedOn(b.send)) && (b.rx&1 == 0 || b.l.touch.Load() != b.rx)
}

// grace waits until nothing that was in progress when it was called still is.
// A key was removed before a word is read here, and a word is written before a
// key is looked up: so what is seen idle here finds the key dead. receiver is one
// that waits itself, and touches nothing meanwhile.
func (d *device) grace(receiver *life) {
	for _, b := range d.inProgress(receiver, nil, nil) {
		for spin := 0; !b.over(); spin++ {
			rest(spin)
		}
	}
}

// settle is grace for the token's holder. It reports false if that would take
// time that the holder, who is no sender, may not take. What waits says that it
// touches nothing, for two that wait for each other; so what is in the outbox is
// looked up again before it is written.
func (l *life) settle() bool {
	wait := l.dev.inProgress(nil, l, l.tx.scratch[:0])
	l.tx.scratch = wait
	defer clear(wait) // they may end
	for _, b := range wait {
		for spin := 0; !b.over(); spin++ {
			if !l.tx.patient {
				return false
			}
			l.tx.resumed = true
			l.moved()
			rest(spin)
		}
	}
	l.tx.resumed = true
	return true
}

// rest passes the time of who waits for a copy.
func rest(spin int) {
	if spin < 100 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}

// reach returns the n bytes at addr, or nil if the key is dead or does not allow
// it. Whoever uses them holds the token or has said touch, and looks up again
// after a step: Deregister waits for that. n is not 0.
func (l *life) reach(addr uint64, n, key uint32, need hw.Privileges) []byte {
	p := l.view.Reach(addr, n, key, need)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

// allows reports whether all segments can be reached. Empty ones always can.
func (l *life) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && l.reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// remoteFault says what is wrong with a peer's reference, in RDMAP's words, or nil.
func (l *life) remoteFault(addr uint64, n, key uint32, need hw.Privileges) *wire.Error {
	r := l.dev.Keys.Lookup(key)
	switch {
	case r.Priv&soft.Remote == 0:
		return wire.ErrSTag
	case r.Zone != l.view.Zone && r.Zone != l.view.Scope:
		return wire.ErrStream
	case r.Priv&need != need:
		return wire.ErrAccess
	}
	if off := addr - r.Addr; off > r.Size || uint64(n) > r.Size-off {
		return wire.ErrBounds
	}
	return nil
}

// tagged says it in DDP's words, which has one for two.
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

// rest returns what is left of the segment that the cursor is in, at most n
// bytes of it and at least one; nil if it can't be reached. Bytes remain.
func (l *life) rest(c *cursor, n int) []byte {
	for c.off == c.sgl[0].Len { // empty ones too
		c.sgl, c.off = c.sgl[1:], 0
	}
	s := &c.sgl[0]
	mem := l.reach(s.Addr, s.Len, s.LKey, c.need)
	if mem == nil {
		return nil
	}
	mem = mem[c.off:]
	return mem[:min(n, len(mem))]
}
