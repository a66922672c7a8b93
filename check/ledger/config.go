package ledger

import (
	"math/rand/v2"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// Config says what a [Run] does.
type Config struct {
	// Providers are what the two adapters are opened on, and Adapters are their
	// names, as [dat.Open] takes them. The two reach each other.
	Providers [2]hw.Provider
	Adapters  [2]string
	// Options are further ones to open the adapters with.
	Options []dat.Option

	// Seed decides every choice of the program.
	Seed uint64
	// Ops is how many posts must have been accepted for the run to end; the lives
	// that are under way then are lived to their end.
	Ops int64
	// Links is how many pairs of endpoints are at work at a time; 0 means 12.
	Links int

	// Unreliable says that the provider breaks connections by itself.
	Unreliable bool
	// Fall has the adapters closed abruptly in full flight, when there were enough
	// posts. What was posted completes all the same, where events are received from
	// channels; what is queued elsewhere is lost with the dispatcher.
	Fall bool
	// EarlyCompletion says that a send or write may succeed before it has arrived.
	EarlyCompletion bool
	// Simple leaves out what makes a single completion hard to follow: in each life
	// one poster of the first adapter sends a few messages, each endpoint has one
	// dispatcher, and the end comes when all is done.
	Simple bool

	// Patience is how long something that must happen may take; 0 means a minute.
	Patience time.Duration
	// OnComplaint hears of each complaint at once. Nil collects them only.
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

// dice makes a source of choices for one purpose. The same numbers give the same
// choices.
func (c *Config) dice(purpose ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, mix(purpose...)))
}

// mix makes one number of several that shows none of them (splitmix64).
func mix(xs ...uint64) (h uint64) {
	for _, x := range xs {
		h += x + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// What dice are for.
const (
	forSalt uint64 = iota
	forLink
	forLife
	forAccount
	forPoster
	forReceiver
)
