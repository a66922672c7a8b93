package soft

import (
	"runtime"
	"sync/atomic"
	"time"

	"godat/internal/token"
	"godat/internal/yield"
)

// # Who is waited for when a key has died
//
// A zone keeps the set of the accessors that may be accessing memory by its keys. A
// goroutine that has made a key dead waits for the accesses in progress of that set
// ([Zone.Await], or [Zone.InProgress] for one that may not block). What that costs does not
// grow with the accessors that are idle, and costs an access nothing:
//
//   - An accessor enters the set by itself, before it looks up its first key. It stays there
//     when the access has ended, so the next access finds it there by a bit in a word of
//     its own, which it loads anyway.
//   - A goroutine that waits takes the accessors that it finds idle out of the set. So it
//     looks at those that are at work, and once at each that has been since the last look.
//
// # Why no access is overlooked
//
// The accessor's bit ([Presence]) is clear only while the accessor is in the set: bit
// and set change under the zone's lock, and the bit is set before the accessor is taken
// out and cleared after it was entered. An accessor says by a locked instruction that it
// is at work, then loads its bit, and enters the set if the bit is set, then looks keys up.
// The goroutine that waits has removed the key before. It sets the bit of an idle accessor
// by a locked instruction, and then looks a second time whether the accessor is at work. So
// one of the two sees the other: the accessor stays in the set, or it sees the bit, waits for
// the lock, and looks the key up when the key is dead.

// Accessor accesses memory for queue pairs: a half of a connection, or one direction of it.
type Accessor interface {
	// InProgress reports whether an access may be in progress, and a word that
	// identifies it.
	InProgress() (word uint64, busy bool)
	// Over reports whether the access that InProgress has identified by the word has
	// ended, or has moved on to a point where the accessor looks its keys up again.
	Over(word uint64) bool
}

// Access is an access in progress.
type Access struct {
	of   Accessor
	word uint64
}

// Over reports whether the access has ended, or has moved on to a point where its accessor
// looks its keys up again.
func (a *Access) Over() bool { return a.of.Over(a.word) }

// Now returns the access of one accessor that is in progress, if one may be.
func Now(of Accessor) (now Access, busy bool) {
	word, busy := of.InProgress()
	return Access{of, word}, busy
}

// Presence is the entry of an accessor in the set of a zone.
type Presence struct {
	// Immutable after Init.
	zone *Zone
	of   Accessor
	word *atomic.Uint32
	bit  uint32

	at int32 // the place in zone.present, counted from 1; 0 while it is not there. The zone's lock guards it
}

// Init initializes a Presence, which is absent: the bit in the accessor's word says so.
func (p *Presence) Init(z *Zone, of Accessor, word *atomic.Uint32, bit uint32) {
	p.zone, p.of, p.word, p.bit = z, of, word, bit
	word.Or(bit)
}

// Enter makes sure that the accessor is in the set, and clears the bit. The accessor has
// said that it is at work, and has found the bit set.
func (p *Presence) Enter() {
	z := p.zone
	yield.Point()
	z.presentMu.Lock()
	if p.at == 0 {
		z.present = append(z.present, p)
		p.at = int32(len(z.present))
	}
	p.word.And(^p.bit)
	z.presentMu.Unlock()
	yield.Point()
}

// Leave takes an accessor that looks no key up any more out of the set, if it is there.
func (p *Presence) Leave() {
	z := p.zone
	z.presentMu.Lock()
	p.word.Or(p.bit)
	if p.at != 0 {
		z.drop(p)
	}
	z.presentMu.Unlock()
}

// drop takes an accessor out of the set. Its bit is set, and the lock is held.
func (z *Zone) drop(p *Presence) {
	last := len(z.present) - 1
	moved := z.present[last]
	z.present[p.at-1] = moved
	moved.at = p.at
	z.present[last], p.at = nil, 0
	z.present = z.present[:last]
}

// InProgress appends to all the accesses in progress in the zone, but not that of the given
// accessor, which may be nil. It takes the accessors that it finds idle out of the set.
func (z *Zone) InProgress(but Accessor, all []Access) []Access {
	z.presentMu.Lock()
	defer z.presentMu.Unlock()
	for i := len(z.present) - 1; i >= 0; i-- {
		p := z.present[i]
		z.looks++
		now, busy := Now(p.of)
		if !busy {
			p.word.Or(p.bit)
			if now, busy = Now(p.of); !busy {
				z.drop(p)
				continue
			}
		}
		if p.of != but {
			all = append(all, now)
		}
	}
	return all
}

// Await waits until the accesses in progress in the zone have ended. It holds no lock while
// it waits, because an accessor may be about to leave.
func (z *Zone) Await() {
	var few [4]Access // a zone of one connection has no more
	for _, a := range z.InProgress(nil, few[:0]) {
		for spin := 0; !a.Over(); spin++ {
			pause(spin)
		}
	}
}

// AwaitBeside waits for accesses of others, for an accessor that steps its token while it waits, and
// touches no memory until it goes on. So two that wait for each other both go on. It returns false
// if it would have to wait and may not.
func AwaitBeside(of []Access, may bool, own *token.Counted) bool {
	for i := range of {
		for spin := 0; !of[i].Over(); spin++ {
			if !may {
				return false
			}
			own.Step()
			pause(spin)
		}
	}
	return true
}

// pause passes the time between two looks at an access in progress. spin counts the looks.
func pause(spin int) {
	if spin < 100 {
		runtime.Gosched()
	} else {
		rest(20 * time.Microsecond)
	}
}

// Looks is how often the goroutines that waited have looked at an accessor of the zone. It
// tells tests what a wait costs.
func (z *Zone) Looks() uint64 {
	z.presentMu.Lock()
	defer z.presentMu.Unlock()
	return z.looks
}
