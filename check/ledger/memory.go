package ledger

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	dat "godat/runtime"
)

// Sizes in bytes of messages and their memory. A slot holds a message.
const (
	maxMessage  = 1024
	maxSegments = 4
	slotSize    = maxMessage
	headerSize  = 8 // a message begins with its cookie
	maxWindow   = 24
	victimSize  = 32 << 10
)

// region is registered memory.
type region struct {
	lmr *dat.LMR
	buf []byte
	// own says that the memory is of the Go heap, so the program may use it after
	// Free.
	own bool
}

// registerTries is how often the ledger repeats a call that an unreliable provider
// may refuse: a registration, NewEndpoint, Connect.
const registerTries = 100

// register registers a region; chance chooses between Register and Alloc unless own
// is set.
func (w *world) register(pz *dat.PZ, size int, priv dat.Privileges, own bool, rng *rand.Rand) *region {
	unmap := rng.IntN(4) != 0
	own = own || w.cfg.AbruptClose // Close of the adapter unmaps what Alloc made, and posters still write to it
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

// span is the local memory of an entry: len bytes from off in its region, in so
// many adjacent segments.
type span struct {
	off, len uint32
	pieces   uint8
}

// cut lays out n bytes from off in a random number of segments, sometimes in none
// if n is 0.
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

// segments appends the segments of a span to a list.
func (r *region) segments(s span, to []dat.Segment) []dat.Segment {
	n := int(s.pieces)
	for k := range n {
		from, end := int(s.len)*k/n, int(s.len)*(k+1)/n
		to = append(to, r.lmr.Segment(int(s.off)+from, end-from))
	}
	return to
}

// address writes the cookie of a send to the beginning of its message, if there is
// room: the receiver finds the send by it.
func (r *region) address(e *entry) {
	if e.length >= headerSize {
		binary.LittleEndian.PutUint64(r.buf[e.local.off:], e.cookie)
	}
}

// sender returns the cookie at the beginning of a message.
func (r *region) sender(s span) uint64 { return binary.LittleEndian.Uint64(r.buf[s.off:]) }
