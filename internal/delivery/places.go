package delivery

import (
	"sync/atomic"

	"godat/internal/yield"
)

// closedBit, in the count of reservations, says that no more are granted.
const closedBit = 1 << 63

// places counts the places of a queue that were reserved, and those that were given
// back. Both counts only grow.
type places struct {
	// The posters' side: how many places are reserved. See Queue.Reserve.
	reserved atomic.Uint64
	seen     atomic.Uint64
	limit    atomic.Uint64
	lanes    []laneCount // of completers that count for themselves, or one of batches; immutable
	_        [40 - 3*wordSize]byte

	// The completers' side: how many places were given back, or used in a channel, without
	// those that lanes count.
	done   atomic.Uint64
	unused atomic.Uint64 // places in done that had no event; of a channel or batches

	refused atomic.Uint64 // reservations that found no room
	_       [40]byte
}

// reserve takes n places if they are free by the last count.
//
// reserved only grows, so if the swap succeeds no place was reserved since the
// load. seen is how many places were free again at an earlier time. That number
// only grows, too, so at worst seen is too small. closedBit makes the comparison
// fail.
func (p *places) reserve(n int) bool {
	r := p.reserved.Load()
	yield.Point()
	return r-p.seen.Load()+uint64(n) <= p.limit.Load() && p.reserved.CompareAndSwap(r, r+uint64(n))
}

// giveBack counts n places as done, and reports whether the queue is closed. The
// goroutine that gives back the last place after that ends the queue: giveBack writes
// done before it reads closedBit, and the closer writes closedBit before it reads
// done.
func (p *places) giveBack(n uint64) (closed bool) {
	done := p.done.Add(n)
	r := p.reserved.Load()
	if assertions && done > r&^closedBit {
		panic("evd: more places given back than reserved")
	}
	return r >= closedBit
}

// allDone counts the places that were given back, or used in a channel.
func (p *places) allDone() uint64 {
	n := p.done.Load()
	for i := range p.lanes {
		n += p.lanes[i].sent.Load()
	}
	return n
}

// idle reports whether nothing is reserved or queued, of a closed queue. Of the
// completers that send meanwhile, idle waits for each whose send has begun. The send of
// any other comes after the closed bit was set, so that completer sees the bit.
func (p *places) idle() bool {
	for i := range p.lanes {
		p.lanes[i].settled()
	}
	return p.granted() == p.allDone()
}

// sends counts the events that were sent, without those that their sender has not counted yet.
// A place without an event counts as unused before it counts as done, so sends may be too low
// by the places that are given back meanwhile, and is never too high.
func (p *places) sends() uint64 { return since(p.allDone(), p.unused.Load()) }

// close refuses further reservations.
func (p *places) close() { p.reserved.Or(closedBit) }

func (p *places) closed() bool { return p.reserved.Load() >= closedBit }

// granted counts the reservations so far.
func (p *places) granted() uint64 { return p.reserved.Load() &^ closedBit }
