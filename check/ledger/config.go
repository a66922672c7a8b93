package ledger

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// Config says what a [Run] does.
type Config struct {
	// Providers and Adapters are what [dat.Open] opens the two adapters with: a
	// provider and a name each. The two must reach each other.
	Providers [2]hw.Provider
	Adapters  [2]string
	// Options are further options to open both adapters with.
	Options []dat.Option

	// Seed decides every choice of the program; how goroutines interleave it does
	// not.
	Seed uint64
	// Ops is how many posts must be accepted before the run ends; the lives under
	// way then are lived to their end.
	Ops int64
	// Links is how many pairs of endpoints post at the same time; 0 means 12.
	Links int

	// Unreliable tells the books that the provider breaks connections by itself.
	Unreliable bool
	// AbruptClose makes the run close both adapters abruptly under all links, once Ops
	// posts were accepted. Posts whose events come through a channel must complete
	// all the same; events in the queue of a dispatcher are lost with it.
	AbruptClose bool
	// EarlyCompletion tells the books that a send or write may succeed before it
	// has arrived.
	EarlyCompletion bool
	// Simple makes a single completion easy to follow: in each life one poster of
	// the first adapter sends a few messages, each endpoint has one dispatcher, and
	// the connection ends when all of them have completed.
	Simple bool

	// Patience is how long the run waits for something that must happen before it
	// complains; 0 means a minute.
	Patience time.Duration
	// OnComplaint, unless nil, is called with each complaint at once, on the
	// goroutine that found it, one call at a time.
	OnComplaint func(Complaint)
}

func (c Config) withDefaults() Config {
	if c.Links == 0 {
		c.Links = 12
	}
	if c.Patience == 0 {
		c.Patience = time.Minute
	}
	return c
}

// dice makes a source of choices for one purpose. The same seed and purpose give
// the same choices.
func (c *Config) dice(purpose ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, mix(purpose...)))
}

// mix hashes several numbers into one.
func mix(xs ...uint64) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, xs)
	return h.Sum64()
}

// The purposes of dice.
const (
	forSalt uint64 = iota
	forLink
	forLife
	forAccount
	forPoster
	forReceiver
)
