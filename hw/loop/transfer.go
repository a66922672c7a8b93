package loop

import (
	"unsafe"

	"godat/hw"
	"godat/internal/yield"
)

// outcome is the outcome of a transfer.
type outcome uint8

const (
	moved outcome = iota
	badSource
	badSink
	broke // the connection was broken between two chunks
)

// total is the sum of the segments' lengths.
func total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// cursor is a position in a list of segments.
type cursor struct {
	end  *end
	need hw.Privileges
	sgl  []hw.SGE
	off  uint32 // offset in the first of sgl
}

// span is the rest of the segment that the cursor is in, at least one byte of it and at
// most n. It is nil if the segment can't be reached. The cursor is not at the end of the
// list.
func (c *cursor) span(n uint64) []byte {
	for c.off == c.sgl[0].Len { // skips empty segments too
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

// transfer moves the first n bytes of one list to the other, in chunks; neither list
// is shorter. Between two chunks it checks that the connection is not broken, and then
// looks every key up anew. So a Deregister waits for one chunk at most.
func (x *executor) transfer(
	src *end, from []hw.SGE, mayRead hw.Privileges,
	dst *end, to []hw.SGE, mayWrite hw.Privileges, n uint64,
) outcome {
	s := cursor{end: src, need: mayRead, sgl: from}
	d := cursor{end: dst, need: mayWrite, sgl: to}
	for n > 0 {
		if int64(n) > x.bytes && x.bytes < maxChunk { // only a worker; a poster has enough
			x.pipe.token.Step()
			x.bytes = maxChunk
			if x.pipe.attention.Load()&broken != 0 {
				return broke
			}
		}
		a := s.span(min(n, uint64(x.bytes)))
		if a == nil {
			return badSource
		}
		b := d.span(uint64(len(a)))
		if b == nil {
			return badSink
		}
		yield.Point()
		k := copy(b, a)
		s.off += uint32(k)
		d.off += uint32(k)
		x.bytes -= int64(k)
		n -= uint64(k)
	}
	return moved
}
