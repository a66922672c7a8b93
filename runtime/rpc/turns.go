package rpc

import (
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// The pieces of which the transfers of a connection take turns.
const (
	firstPiece = 64 << 10
	leastPiece = 64 << 10
	mostPiece  = 256 << 10
	// besideCalls is the most of a piece while the client makes calls without memory, which wait behind
	// it, and calmAfter is when it has made none for so long.
	besideCalls = 64 << 10
	calmAfter   = 100 * time.Millisecond

	// A piece grows when it takes less time than quickPiece, and shrinks when it takes more than slowPiece.
	quickPiece = 200 * time.Millisecond
	slowPiece  = time.Second

	// atOnce is how many pieces are under way at a time.
	atOnce = 4
)

// turns lets the transfers of a connection take turns, by pieces. So a small call does not wait until a
// large transfer has ended, a transfer does not wait for all that began before, and what waits for its
// turn is not late: the time of a piece begins with it, and anew with each piece before it that has moved.
type turns struct {
	line *semaphore.Weighted // first come, first served
	size atomic.Int64        // of the next piece
	call atomic.Int64        // when the last call without memory came, in nanoseconds
	last atomic.Int64        // when the last piece had moved, in nanoseconds
}

func (t *turns) init() {
	t.line = semaphore.NewWeighted(atOnce)
	t.size.Store(firstPiece)
}

// piece is the most bytes of the next piece, and how many of the turns it takes.
func (t *turns) piece() (size int, weight int64) {
	if time.Now().UnixNano()-t.call.Load() < int64(calmAfter) {
		return min(int(t.size.Load()), besideCalls), atOnce
	}
	return int(t.size.Load()), 1
}

// moved is when the last piece had moved.
func (t *turns) moved() time.Time { return time.Unix(0, t.last.Load()) }

// took says how long a piece took.
func (t *turns) took(n int, d time.Duration) {
	t.last.Store(time.Now().UnixNano())
	switch size := t.size.Load(); {
	case d < quickPiece && int64(n) == size:
		t.size.CompareAndSwap(size, min(2*size, mostPiece))
	case d > slowPiece:
		t.size.CompareAndSwap(size, max(size/2, leastPiece))
	}
}
