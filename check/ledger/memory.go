package ledger

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	dat "godat/runtime"
)

// Sizes of what is sent, in bytes. A slot holds a message.
const (
	maxMessage  = 1024
	maxSegments = 4
	slotSize    = maxMessage
	headerSize  = 8 // a message begins with its cookie
	maxWindow   = 24
	victimSize  = 32 << 10
)

// region is registered memory, and how it came by it.
type region struct {
	lmr *dat.LMR
	buf []byte
	// own says that the memory is Go's, and so the program's again after Free.
	own bool
}

// registerTries is how often a registration is tried that a provider may refuse.
const registerTries = 100

// register makes a region. How it comes by its memory is one more choice.
func (w *world) register(pz *dat.PZ, size int, priv dat.Privileges, own bool, rng *rand.Rand) *region {
	unmap := rng.IntN(4) != 0
	own = own || w.cfg.Fall // the adapter unmaps under everybody what is its own
	var err error
	for range registerTries {
		r := &region{own: own}
		switch {
		case own:
			r.buf = make([]byte, size)
			r.lmr, err = pz.Register(r.buf, priv)
		case unmap:
			r.lmr, err = pz.Alloc(size, priv, dat.WithUnmapOnFree())
		default:
			r.lmr, err = pz.Alloc(size, priv)
		}
		if err == nil {
			r.buf = r.lmr.Bytes()
			return r
		}
		if !w.cfg.Unreliable || !errors.Is(err, dat.ErrInsufficientResources) {
			break
		}
	}
	w.complain(Code, "registering %d bytes: %v", size, err)
	return nil
}

// span is where the local memory of an entry is in its region: len bytes in so many
// segments, one behind the other.
type span struct {
	off, len uint32
	pieces   uint8
}

// cut lays n bytes out from off on, in as many pieces as chance has it: now and
// then none, if there are no bytes.
func cut(rng *rand.Rand, off, n int) span {
	s := span{off: uint32(off), len: uint32(n), pieces: 1}
	if x := rng.Uint32(); x%4 == 0 {
		s.pieces += uint8(x >> 8 % maxSegments)
	}
	if n == 0 && rng.IntN(2) == 0 {
		s.pieces = 0
	}
	return s
}

// segments names the pieces to a post.
func (r *region) segments(s span, to []dat.Segment) []dat.Segment {
	n := int(s.pieces)
	for k := range n {
		from, end := int(s.len)*k/n, int(s.len)*(k+1)/n
		to = append(to, r.lmr.Segment(int(s.off)+from, end-from))
	}
	return to
}

// address puts the cookie of a send at the beginning of its message, if there is
// room, so that its receiver can say which message it got.
func (r *region) address(e *entry) {
	if e.length >= headerSize {
		binary.LittleEndian.PutUint64(r.buf[e.local.off:], e.cookie)
	}
}

// sender is the cookie at the beginning of a message.
func (r *region) sender(s span) uint64 { return binary.LittleEndian.Uint64(r.buf[s.off:]) }
