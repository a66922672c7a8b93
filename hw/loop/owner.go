package loop

import (
	"sync/atomic"

	"godat/internal/release"
	"godat/internal/token"
	"godat/internal/yield"
)

// The owner of a pipe's source executes a plain request without the pipe's token: PostOne.
// What keeps others from the pipe meanwhile is the word by which the owner sees to it that
// its own calls come one at a time (Own).
//
// # The right to a pipe
//
// A goroutine has the pipe, and is the pipe's user, if it
//
//   - holds the token, and began to hold it in a call of the owner, or saw the word's
//     highest bit clear since it took the token; or
//   - is in PostOne, where it found the token free and the attention word 0.
//
// # Why one goroutine at a time has it
//
// The token has one holder, and the owner makes one call at a time. So the two could only
// be the owner in PostOne, and the holder of the token. The owner sets the bit by a locked
// instruction, and then looks whether the token is held; the holder takes the token by a
// locked instruction, and then looks at the bit. At least one of them sees the other. If
// the owner does, PostOne leaves the request alone. If the holder does, it does not have
// the pipe (kick): it sets the bit look of the attention word, and releases the token.
//
// What the owner did in PostOne comes before the instruction that clears the bit. So it
// comes before all that a holder does after it saw the bit clear. What a holder did comes
// before its release, and so before all that the owner does after it found the token free.
//
// # Why nothing is lost
//
// A goroutine that finds the owner at work sets look, and after that finds the bit still
// set. The owner clears the bit later, and after that looks at the attention word
// (LookAgain): it finds look, and kicks the pipe. If it finds the token held, its kick keeps
// the holder from releasing the token, and the holder looks at the bit again. The pipe's
// user clears look before it looks at anything else. No other goroutine sets look
// meanwhile, since only a holder of the token does.
//
// # Why nobody waits for an endpoint
//
// A pipe's user and an owner that makes a call wait for no other: they leave a mark and
// go on. So two endpoints that are connected with each other, and disconnect or
// are reset at the same time, break each other's pipes and wait for nothing. Only
// Deregister, Settle and workers wait until the accesses in progress have ended
// (memory.go). The first two hold nothing. A worker that waits holds its pipe's token, and
// steps; it holds no word of an owner. So if two workers wait for each other, both see a
// step and go on; and a worker that waits for an owner waits for one call, which waits for
// nobody.
//
// An owner that calls Break has ended its calls of PostOne for good, and says so by
// srcClosed. From then on nobody leaves the pipe to it: it may be reset, have another pipe
// out, and not look at this one any more.

// kick makes sure that the pipe's user looks at it after this call: the present holder, or the owner when it has ended its calls, or else the caller itself.
func (p *pipe) kick() {
	if !p.token.TakeOrKick() {
		return
	}
	yield.Point()
	for p.owned() {
		p.attention.Or(look)
		yield.Point()
		if p.owned() && p.token.Release() {
			return
		}
	}
	p.grant()
	p.run()
}

// kickOwn is kick in a call of the owner.
func (p *pipe) kickOwn() {
	if p.token.TakeOrKick() {
		p.grant()
		p.run()
	}
}

// owned reports whether the source's owner may be in PostOne, and looks again after it.
func (p *pipe) owned() bool {
	return p.owner != nil && p.owner.Load()&token.Held != 0 && p.attention.Load()&srcClosed == 0
}

// free reports, in a call of the owner, whether nobody has the pipe and nothing is to be
// looked at.
func (p *pipe) free() bool { return p.token.Load()&token.Held == 0 && p.attention.Load() == 0 }

// moveOn says, in a call of the owner, that the accesses of its calls of PostOne have ended.
func (p *pipe) moveOn() { release.Uint64(&p.calls, p.calls.Load()+1) }

// Own implements [hw.Direct].
func (q *queuePair) Own(word *atomic.Uint64) { q.owner = word }

// LookAgain implements [hw.Direct]. The pipe to the queue pair is kicked behind the owner's
// call, too: within it, a send with invalidation would find the owner at work, and be left
// to a worker.
func (q *queuePair) LookAgain() {
	if q.due.Load() && q.due.Swap(false) {
		if p := q.in.Load(); p != nil {
			p.kick()
		}
	}
	if p := q.out.Load(); p != nil && p.attention.Load()&look != 0 {
		p.kick()
	}
}
