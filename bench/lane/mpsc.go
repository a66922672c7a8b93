package lane

import "sync/atomic"

// MPSC is the textbook bounded ring for many producers and one consumer: each cell has
// a sequence number that both sides write.
type MPSC struct {
	cells []mpscCell
	_     [40]byte
	tail  atomic.Uint64
	_     [56]byte
	head  uint64
}

type mpscCell struct {
	seq  atomic.Uint64
	data [7]uint64
}

// NewMPSC makes a ring of n cells.
func NewMPSC(n int) *MPSC {
	r := &MPSC{cells: make([]mpscCell, n)}
	for i := range r.cells {
		r.cells[i].seq.Store(uint64(i))
	}
	return r
}

// Push puts v into the ring, and reports whether there was room. Any goroutine may
// call it.
func (r *MPSC) Push(v *[7]uint64) bool {
	for {
		t := r.tail.Load()
		c := &r.cells[t%uint64(len(r.cells))]
		switch seq := c.seq.Load(); {
		case seq == t:
			if r.tail.CompareAndSwap(t, t+1) {
				c.data = *v
				c.seq.Store(t + 1)
				return true
			}
		case seq < t:
			return false
		}
	}
}

// Pop takes the oldest value, and reports whether there was one. One goroutine at a
// time calls it.
func (r *MPSC) Pop(v *[7]uint64) bool {
	c := &r.cells[r.head%uint64(len(r.cells))]
	if c.seq.Load() != r.head+1 {
		return false
	}
	*v = c.data
	c.seq.Store(r.head + uint64(len(r.cells)))
	r.head++
	return true
}
