package ledger

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"

	dat "godat/runtime"
)

// Sizes of what is sent, in bytes. A slot holds a message in up to maxSegments
// pieces with gaps between them.
const (
	maxMessage  = 1024
	maxSegments = 4
	maxGap      = 16
	slotSize    = maxMessage + (maxSegments-1)*maxGap
	headerSize  = 8 // a message begins with its cookie
	maxWindow   = 24
	mailSlots   = 4
	mailSize    = 256
	bigSize     = 512 << 10
	bigLeast    = 64<<10 + 1
	librarySize = 64 << 10
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

// spread is up to maxSegments pieces of a region, in order.
type spread struct {
	n  uint8
	at [maxSegments]span
}

type span struct{ off, len uint32 }

// cut lays n bytes out from off on, in so many pieces as chance has it: now and
// then none, or one that is empty.
func cut(rng *rand.Rand, off, n int) (s spread) {
	pieces := 1
	if x := rng.Uint32(); x%4 == 0 {
		pieces = 1 + int(x>>8%maxSegments)
	}
	if n == 0 && pieces == 1 && rng.IntN(2) == 0 {
		return s
	}
	for i := range pieces {
		k := n
		if i < pieces-1 {
			k = rng.IntN(n + 1)
		}
		s.at[i] = span{uint32(off), uint32(k)}
		n -= k
		off += k
		if pieces > 1 {
			off += rng.IntN(maxGap)
		}
	}
	s.n = uint8(pieces)
	return s
}

// segments names the pieces to a post.
func (r *region) segments(s *spread, to []dat.Segment) []dat.Segment {
	for _, x := range s.at[:s.n] {
		to = append(to, r.lmr.Segment(int(x.off), int(x.len)))
	}
	return to
}

// word is the j-th word of what key stands for. The first is the key itself.
func word(key, j uint64) uint64 {
	x := key + j*0x9e3779b97f4a7c15
	if j == 0 {
		return x
	}
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

// fill writes what key stands for, from byte at on.
func fill(dst []byte, key uint64, at int) {
	for len(dst) > 0 {
		if at%8 == 0 && len(dst) >= 8 {
			binary.LittleEndian.PutUint64(dst, word(key, uint64(at/8)))
			dst, at = dst[8:], at+8
			continue
		}
		dst[0] = byte(word(key, uint64(at/8)) >> (at % 8 * 8))
		dst, at = dst[1:], at+1
	}
}

// differs is the first byte that is not what key stands for, from byte at on; -1
// when all are.
func differs(got []byte, key uint64, at int) int {
	from := at
	for len(got) > 0 {
		if at%8 == 0 && len(got) >= 8 && binary.LittleEndian.Uint64(got) == word(key, uint64(at/8)) {
			got, at = got[8:], at+8
			continue
		}
		if got[0] != byte(word(key, uint64(at/8))>>(at%8*8)) {
			return at - from
		}
		got, at = got[1:], at+1
	}
	return -1
}

// fill writes the first n bytes of the pieces.
func (r *region) fill(s *spread, n int, key uint64) {
	at := 0
	for _, x := range s.at[:s.n] {
		k := min(int(x.len), n-at)
		fill(r.buf[x.off:][:k], key, at)
		at += k
	}
}

// differs compares the first n bytes of the pieces, which stand for those of key
// from byte from on.
func (r *region) differs(s *spread, n int, key uint64, from int) int {
	at := 0
	for _, x := range s.at[:s.n] {
		k := min(int(x.len), n-at)
		if bad := differs(r.buf[x.off:][:k], key, from+at); bad >= 0 {
			return at + bad
		}
		at += k
	}
	if at < n {
		return at
	}
	return -1
}

// header is the cookie at the beginning of a message.
func (r *region) header(s *spread) uint64 {
	var b [headerSize]byte
	at := 0
	for _, x := range s.at[:s.n] {
		at += copy(b[at:], r.buf[x.off:][:x.len])
	}
	return binary.LittleEndian.Uint64(b[:])
}

// clear empties the pieces, so that what is to come can be told from what was.
func (r *region) clear(s *spread) {
	for _, x := range s.at[:s.n] {
		clear(r.buf[x.off:][:x.len])
	}
}

// first is the first n bytes of the pieces.
func (s spread) first(n int) spread {
	for i := range s.at[:s.n] {
		s.at[i].len = uint32(min(int(s.at[i].len), n))
		n -= int(s.at[i].len)
	}
	return s
}
