package rpc

import (
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	dat "godat/runtime"
)

// The pieces of which the transfers of a connection take turns.
const (
	firstPiece = 16 << 10
	leastPiece = 4 << 10
	mostPiece  = 256 << 10
	// besideCalls is the most of a piece while the client makes calls without memory, which wait behind
	// it, and calmAfter is when it has made none for so long.
	besideCalls = 64 << 10
	calmAfter   = 100 * time.Millisecond

	// A piece grows when it takes less time than quickPiece, and shrinks when it takes more than slowPiece
	// beyond the shortest time of a piece: a way that is long, and not slow, makes no piece small. So what
	// is under way takes about a second, also over 200 kbit/s.
	quickPiece = 200 * time.Millisecond
	slowPiece  = time.Second

	// atOnce is how many pieces are under way at a time.
	atOnce = 4
)

// turns lets the transfers of a connection take turns, by pieces. So a small call does not wait until a
// large transfer has ended, a transfer does not wait for all that began before, and what waits for its
// turn is not late: the time of a piece begins with it, and anew with each piece before it that has moved.
type turns struct {
	line  *semaphore.Weighted // first come, first served
	size  atomic.Int64        // of the next piece
	call  atomic.Int64        // when the last call without memory came, in nanoseconds
	last  atomic.Int64        // when the last piece had moved, in nanoseconds
	room  room                // for Writes
	least atomic.Int64        // the shortest time of a piece that was read, in nanoseconds; 0 before the first
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

// took says how long a piece took that was read: from the request on until it had come.
func (t *turns) took(n int, d time.Duration) {
	t.last.Store(time.Now().UnixNano())
	least := t.least.Load()
	if least == 0 || int64(d) < least {
		least = max(int64(d), 1)
		t.least.Store(least)
	}
	t.fit(n, d < quickPiece, d-time.Duration(least) > slowPiece)
}

// wrote says how long a piece took that was written: until the system had taken it, which is at once while
// that has room. So whether the link is quick, the room tells.
func (t *turns) wrote(conn *dat.Conn, n int, d time.Duration) {
	t.last.Store(time.Now().UnixNano())
	size := t.size.Load()
	t.fit(n, d < quickPiece && int64(n) == size && size < mostPiece && t.room.isQuick(conn), d > slowPiece)
}

// fit fits the size of the pieces to how long one of n bytes took.
func (t *turns) fit(n int, quick, slow bool) {
	switch size := t.size.Load(); {
	case quick && int64(n) == size:
		t.size.CompareAndSwap(size, min(2*size, mostPiece))
	case slow:
		t.size.CompareAndSwap(size, max(size/2, leastPiece))
	}
}
