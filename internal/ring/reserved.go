package ring

import (
	"sync/atomic"
	"unsafe"

	"godat/internal/release"
	"godat/internal/yield"
)

// cacheLine is the distance, in bytes, that keeps two fields of different owners
// out of one cache line, on all the architectures that the module builds for.
const cacheLine = 64

// sliceSize is the size of a slice: 24 bytes, or 12 where a pointer has 32 bits.
const sliceSize = unsafe.Sizeof([]byte(nil))

// A cell's word announces the batch that begins in the cell: its upper bits are the
// position of the batch's first value, and its lower bits the number of values,
// which follow in the next cells. A word of an earlier round has another position,
// and the zero word has no values, so the consumer takes neither for a batch.
const (
	countBits = 16
	maxBatch  = 1<<countBits - 1
)

// Cell is a place of a ring. It is 64 bytes for a value of 56: one cache line carries
// word and value.
type Cell[T any] struct {
	word  atomic.Uint64
	Value T
}

// Reserved is a ring with many producers and one consumer. Its owner ensures that
// the ring never holds more values than it has places: every producer has reserved
// a place for what it puts, and a place is reserved again only when Take has
// returned for its value. So PutAll needs no check and no second try.
//
// Any number of goroutines may call the producers' methods. One goroutine at a time
// calls the consumer's methods (Take, Ready, Next); the owner orders these calls.
type Reserved[T any] struct {
	// Immutable.
	cells []Cell[T] // as many as a power of two
	_     [cacheLine - sliceSize]byte

	// The producers'. Positions count from 0 and never wrap.
	tail atomic.Uint64 // next free position
	_    [cacheLine - 8]byte

	// The consumer's.
	next  uint64 // position of the next value to take
	avail uint64 // values before it are known to be published
	_     [cacheLine - 16]byte
}

// Init makes the zero Reserved ready for use, with at least places places.
func (r *Reserved[T]) Init(places int) {
	r.cells = make([]Cell[T], powerOfTwo(places))
}

// Cap is the number of places.
func (r *Reserved[T]) Cap() int { return len(r.cells) }

// Claim takes the place of one value, for which the caller has reserved it: it returns the
// value's cell, which has an old value in it, and its position.
func (r *Reserved[T]) Claim() (c *Cell[T], position uint64) {
	t := r.tail.Add(1) - 1
	return &r.cells[t&uint64(len(r.cells)-1)], t
}

// Publish lets the consumer see the value that the caller has written into its cell. Until
// then the consumer stops before the value, however many later values are published.
//
// What the producer loads after Publish it may load before the consumer can see the
// value; but not before the consumer can see the claim, in Tail. A consumer that tells
// producers that it sleeps must therefore first wait for all claimed values.
func (c *Cell[T]) Publish(position uint64) {
	yield.Point()
	release.Uint64(&c.word, position<<countBits|1)
}

// PutAll appends vs in order, up to 65535 at a time with no other value in between.
// The caller has reserved their places. One publication covers each batch of so
// many.
func (r *Reserved[T]) PutAll(vs []T) {
	for len(vs) > maxBatch {
		r.putBatch(vs[:maxBatch])
		vs = vs[maxBatch:]
	}
	if len(vs) > 0 {
		r.putBatch(vs)
	}
}

func (r *Reserved[T]) putBatch(vs []T) {
	n := uint64(len(vs))
	r.publishAll(r.tail.Add(n)-n, vs)
}

// ClaimAll is Claim for a batch of n values, at most 65535. It returns the position of the
// first. The others follow it; At finds each.
func (r *Reserved[T]) ClaimAll(n int) (first uint64) { return r.tail.Add(uint64(n)) - uint64(n) }

// At returns the cell of a claimed position.
func (r *Reserved[T]) At(position uint64) *Cell[T] { return &r.cells[position&uint64(len(r.cells)-1)] }

// Stretch returns the cells of up to n claimed positions, from position on, that lie one behind
// the other.
func (r *Reserved[T]) Stretch(position uint64, n int) []Cell[T] {
	at := int(position & uint64(len(r.cells)-1))
	return r.cells[at:min(at+n, len(r.cells))]
}

// PublishAll publishes a batch that ClaimAll has claimed, whose first value has that cell and
// position. What [Cell.Publish] says of later loads holds for it, too.
func (c *Cell[T]) PublishAll(first uint64, n int) {
	yield.Point()
	release.Uint64(&c.word, first<<countBits|uint64(n))
}

// publishAll fills the cells from position t on. Until then the consumer stops before the
// first, however many later ones are published.
func (r *Reserved[T]) publishAll(t uint64, vs []T) {
	yield.Point()
	cells := r.cells
	for i := range vs {
		cells[(t+uint64(i))&uint64(len(cells)-1)].Value = vs[i]
	}
	cells[t&uint64(len(cells)-1)].word.Store(t<<countBits | uint64(len(vs)))
}

// Tail is how many values have been claimed since the ring was made, published or
// not. Any goroutine may call it.
func (r *Reserved[T]) Tail() uint64 { return r.tail.Load() }

// Take moves the next values into buf and reports how many. It belongs to the
// consumer. Their places are free once it has returned.
func (r *Reserved[T]) Take(buf []T) int {
	cells, next, avail := r.cells, r.next, r.avail
	if len(cells) == 0 {
		return 0
	}
	for i := range buf {
		c := &cells[next&uint64(len(cells)-1)]
		if next == avail {
			n, ok := published(c.word.Load(), next)
			if !ok {
				break
			}
			avail += n
		}
		buf[i] = c.Value
		next++
	}
	n := int(next - r.next)
	r.next, r.avail = next, avail
	return n
}

// look finds the next published batch.
func (r *Reserved[T]) look() bool {
	n, ok := published(r.cells[r.avail&uint64(len(r.cells)-1)].word.Load(), r.avail)
	if ok {
		r.avail += n
	}
	return ok
}

// published is how many values a cell's word announces from a position on. It reports
// false if the word is of an earlier round, or announces none.
func published(word, position uint64) (n uint64, ok bool) {
	n = word ^ position<<countBits // the position's bits cancel out, if it is this one
	return n, n-1 < maxBatch
}

// Ready counts the values that Take would find, up to at least limit. It
// belongs to the consumer.
func (r *Reserved[T]) Ready(limit uint64) uint64 {
	for r.avail-r.next < limit && r.look() {
	}
	return r.avail - r.next
}

// Next is the position of the next value to take, which is how many have been
// taken. It belongs to the consumer.
func (r *Reserved[T]) Next() uint64 { return r.next }

func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}
