package soft

import (
	"unsafe"

	"godat/hw"
)

// Total is the sum of the segments' lengths.
func Total(sgl []hw.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Len)
	}
	return n
}

// Bytes returns the n bytes at addr, or nil if the key is dead or does not allow the access. The
// rules are those of Reach.
func (v *View) Bytes(addr uint64, n, key uint32, need hw.Privileges) []byte {
	p := v.Reach(addr, n, key, need)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

// Allows reports whether all segments can be reached. An empty segment always can.
func (v *View) Allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && v.Reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// Cursor is a position in a list of segments, whose keys must have the privileges Need.
type Cursor struct {
	SGL  []hw.SGE
	Off  uint32 // offset in the first of SGL
	Need hw.Privileges
}

// Next returns the bytes at the cursor up to the end of their segment, at most n of them and at
// least one; nil if they can't be reached. The cursor is not at the end of its list.
func (v *View) Next(c *Cursor, n int) []byte {
	c.settle()
	s := &c.SGL[0]
	mem := v.Bytes(s.Addr, s.Len, s.LKey, c.Need)
	if mem == nil {
		return nil
	}
	mem = mem[c.Off:]
	return mem[:min(n, len(mem))]
}

// Skip moves the cursor on by n of the bytes that Next returned.
func (c *Cursor) Skip(n int) {
	if n > 0 {
		c.settle()
		c.Off += uint32(n)
	}
}

// settle moves the cursor from the end of a segment to the next byte.
func (c *Cursor) settle() {
	for c.Off == c.SGL[0].Len { // skips empty segments too
		c.SGL, c.Off = c.SGL[1:], 0
	}
}
