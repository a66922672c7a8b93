package loop

import (
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

// outcome is what came of a transfer.
type outcome uint8

const (
	moved outcome = iota
	badSource
	badSink
	broke // the connection was broken between two chunks
)

// total is the sum of the segments.
func total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// allows reports whether all segments can be reached. Empty ones always can.
func (e *end) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && e.Reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// cursor is a place in a list of segments.
type cursor struct {
	end  *end
	need hw.Privileges
	sgl  []hw.SGE
	off  uint32 // in the first of sgl
}

// rest returns what is left of the segment that the cursor is in, at most n
// bytes of it and at least one; nil if it can't be reached. Bytes remain.
func (c *cursor) rest(n uint64) []byte {
	for c.off == c.sgl[0].Len { // empty ones too
		c.sgl, c.off = c.sgl[1:], 0
	}
	s := &c.sgl[0]
	base := c.end.Reach(s.Addr, s.Len, s.LKey, c.need)
	if base == nil {
		return nil
	}
	mem := unsafe.Slice((*byte)(base), s.Len)[c.off:]
	if uint64(len(mem)) > n {
		mem = mem[:n]
	}
	return mem
}

// transfer moves n bytes from the first n of one list to the first n of the
// other, both at least that long, in chunks. Between two chunks it looks whether
// the connection is still there, and every piece of memory is looked up anew: so
// the wait of a Deregister ends with the chunk.
func (p *pipe) transfer(
	src *end, from []hw.SGE, mayRead hw.Privileges,
	dst *end, to []hw.SGE, mayWrite hw.Privileges, n uint64,
) outcome {
	s := cursor{end: src, need: mayRead, sgl: from}
	d := cursor{end: dst, need: mayWrite, sgl: to}
	for n > 0 {
		if int64(n) > p.bytes && p.bytes < maxChunk { // a worker's; a poster has enough
			p.step()
			p.bytes = maxChunk
			if p.attention.Load()&broken != 0 {
				return broke
			}
		}
		a := s.rest(min(n, uint64(p.bytes)))
		if a == nil {
			return badSource
		}
		b := d.rest(uint64(len(a)))
		if b == nil {
			return badSink
		}
		yield.Point()
		k := copy(b, a)
		s.off += uint32(k)
		d.off += uint32(k)
		p.bytes -= int64(k)
		n -= uint64(k)
	}
	return moved
}
