package posts

import (
	"encoding/binary"
	"math/rand/v2"

	"godat/hw"
	"godat/mem"
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
	lmr *mem.LMR
	buf []byte
}

// register registers a region: memory of the Go heap, which the program may use after
// Free, if own is set; otherwise chance chooses whether Free unmaps it.
func (w *world) register(pz *mem.PZ, size int, priv hw.Privileges, own bool, rng *rand.Rand) *region {
	unmap := rng.IntN(4) != 0
	own = own || w.cfg.AbruptClose // a closed adapter leaves the memory of Alloc to the program, and nobody frees it then
	r := &region{}
	err := w.retry(func() (err error) {
		switch {
		case own:
			r.lmr, err = pz.Register(make([]byte, size), priv)
		case unmap:
			r.lmr, err = pz.Alloc(size, priv, mem.WithUnmapOnFree())
		default:
			r.lmr, err = pz.Alloc(size, priv)
		}
		return err
	})
	if !w.must(err, "registering %d bytes", size) {
		return nil
	}
	r.buf = r.lmr.Bytes()
	return r
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
func (r *region) segments(s span, to []mem.Segment) []mem.Segment {
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
