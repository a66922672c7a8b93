package ledger

import (
	"sync/atomic"

	dat "godat/runtime"
)

// What an entry has come to.
const (
	blank    uint32 = iota
	posting         // the post has not returned
	accepted        // it returned nil
	refused         // it returned an error
	settling        // its event is being looked at
	succeeded
	failed
)

// entry is one post in the books.
type entry struct {
	// The poster's, written before it posts.
	cookie uint64
	begin  uint64 // the lane's clock
	length uint32 // bytes that a success moves; of a receive, the room
	op     dat.Op
	flags  dat.Flags
	place  place
	hopes  bool // it is to fail at the target
	local  span
	remote uint32 // offset in what the peer lets be written and read

	end     atomic.Uint64 // the lane's clock, once the post returned nil
	state   atomic.Uint32
	arrived atomic.Uint32 // of a send: how often the peer received it

	// Written by whoever settles it.
	from *entry // of a receive: the send
}

// place is where an event is expected.
type place uint8

const (
	atMain   place = 0 // 1 to maxRoutes: that route
	atShot   place = 0xfe
	nowhere  place = 0xff // a one-shot request that was given up
	maxRoute       = 3
)

// isOpen reports whether an event for the entry may still come, as far as its
// state says.
func (e *entry) isOpen() bool {
	s := e.state.Load()
	return s == posting || s == accepted
}

// claim makes the caller the one who settles the entry. It returns the state
// that it found: posting or accepted when it may go on.
func (e *entry) claim() (was uint32) {
	for {
		was = e.state.Load()
		if was != posting && was != accepted || e.state.CompareAndSwap(was, settling) {
			return was
		}
	}
}

// quiet reports whether the entry may have ended without an event.
func (e *entry) quiet() bool { return e.flags&dat.Suppress != 0 || e.place == nowhere }
