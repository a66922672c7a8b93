package ledger

import (
	"sync/atomic"

	dat "godat/runtime"
)

// The states of an entry.
const (
	blank    uint32 = iota
	posting         // the post has not returned
	accepted        // it returned nil
	refused         // it returned an error
	settling        // a consumer is checking its event
	succeeded
	failed
)

// entry is one post in the books.
type entry struct {
	// Written by the poster before it posts.
	cookie uint64
	begin  uint64 // the lane's clock before the post
	length uint32 // bytes of the request; of a receive, the room
	op     dat.Op
	flags  dat.Flags
	place  place
	hopes  bool // the post must fail at the peer
	local  span
	remote uint32 // offset in the peer's region that is read or written

	end     atomic.Uint64 // the lane's clock when the post had returned nil
	state   atomic.Uint32
	arrived atomic.Uint32 // of a send: how often the peer has received it

	// Written by the consumer that claimed the entry.
	from *entry // of a receive: the send
}

// place is where the event of an entry must come.
type place uint8

const (
	atMain   place = 0 // 1 to maxRoutes: that route
	atShot   place = 0xfe
	nowhere  place = 0xff // at a one-shot that was released unread
	maxRoute       = 3
)

// isOpen reports whether an event for the entry may still come.
func (e *entry) isOpen() bool {
	s := e.state.Load()
	return s == posting || s == accepted
}

// claim lets one consumer settle the entry: the one for which it returns posting or
// accepted. Any other gets the state that forbids it.
func (e *entry) claim() (was uint32) {
	for {
		was = e.state.Load()
		if was != posting && was != accepted || e.state.CompareAndSwap(was, settling) {
			return was
		}
	}
}

// quiet reports whether the entry may end without an event.
func (e *entry) quiet() bool { return e.flags&dat.Suppress != 0 || e.place == nowhere }
