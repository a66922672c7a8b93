package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
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

// transfer moves the first n bytes of one list to the other, in chunks; neither list
// is shorter. Between two chunks it checks that the connection is not broken, and then
// looks every key up anew. So a Deregister waits for one chunk at most.
func (x *executor) transfer(
	src *end, from []hw.SGE, mayRead hw.Privileges,
	dst *end, to []hw.SGE, mayWrite hw.Privileges, n uint64,
) outcome {
	s := soft.Cursor{SGL: from, Need: mayRead}
	d := soft.Cursor{SGL: to, Need: mayWrite}
	for n > 0 {
		if int64(n) > x.bytes && x.bytes < maxChunk { // only a worker; a poster has enough
			x.pipe.token.Step()
			x.bytes = maxChunk
			if x.pipe.attention.Load()&broken != 0 {
				return broke
			}
		}
		a := src.Next(&s, int(min(n, uint64(x.bytes))))
		if a == nil {
			return badSource
		}
		b := dst.Next(&d, len(a))
		if b == nil {
			return badSink
		}
		yield.Point()
		k := copy(b, a)
		s.Skip(k)
		d.Skip(k)
		x.bytes -= int64(k)
		n -= uint64(k)
	}
	return moved
}
