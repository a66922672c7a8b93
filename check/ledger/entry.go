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
	body   body
	chain  bool // its memory is the next entry's too
	mail   uint8
	hopes  bool // it is to fail at the target
	local  spread
	remote uint32 // offset in the peer's region that body says
	source uint32 // offset in the peer's library
	told   uint32 // bytes in the mailbox that a send tells of

	end     atomic.Uint64 // the lane's clock, once the post returned nil
	state   atomic.Uint32
	arrived atomic.Uint32 // of a send: how often the peer received it

	// Written by whoever settles it.
	got  uint32 // of a receive: bytes
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

// body says how an entry's bytes are checked once it has succeeded.
type body uint8

const (
	bodyNone    body = iota
	bodyMessage      // a receive: what the send it received had
	bodyWrite        // a write: the peer's slot has what its cookie says
	bodyCopy         // a write of what a read brought: the peer's slot has the library's bytes
	bodyRead         // a read: the local slot has the library's bytes
	bodyBig          // a write into the peer's large region
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
