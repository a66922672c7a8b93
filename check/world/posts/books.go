package posts

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/ep"
)

// books holds all accounts of a run that are not sealed.
type books struct {
	complaints
	early  bool // a success does not mean that the message has arrived
	counts counts
	posted [2]atomic.Int64 // by direction

	ids       atomic.Uint32 // of accounts
	cookies   atomic.Uint64 // numbers of those that were drawn
	endpoints sync.Map      // *ep.Endpoint to *account
	entries   sync.Map      // cookie to *entry
}

// counts is how often each thing happened, by its name, to show that everything did.
type counts struct {
	mu sync.Mutex
	of map[string]int64
}

func (c *counts) add(what any, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int64)
	}
	c.of[fmt.Sprint(what)] += n
}

// What happened, in words.
const (
	suppressed  = "suppressed"   // a request that succeeded without an event
	orphaned    = "orphaned"     // a connection that the provider ended before its planned end
	carriedOver = "carried over" // a receive that stayed posted through a reset
	lives       = "lives"
	refusals    = "refused"
)

// posts is how many posts were accepted.
func (b *books) posts() int64 { return b.posted[requests].Load() + b.posted[receives].Load() }

// known adds the endpoint of an account, before any call on it.
func (b *books) known(a *account) { b.endpoints.Store(a.ep, a) }

// of returns the account of an endpoint, or nil.
func (b *books) of(ep *ep.Endpoint) *account {
	a, _ := b.endpoints.Load(ep)
	found, _ := a.(*account)
	return found
}

// find returns the entry of a cookie; nil if nobody has posted it, or its account is sealed.
func (b *books) find(cookie uint64) *entry {
	found, _ := b.entries.Load(cookie)
	e, _ := found.(*entry)
	return e
}

// seal removes an account, and its entries with it: every event of its endpoint has
// come.
func (b *books) seal(a *account) {
	a.sealed.Store(true)
	b.endpoints.Delete(a.ep)
	for d := range a.lanes {
		for _, p := range a.lanes[d].pages {
			for i := range p.begun.Load() {
				b.entries.Delete(p.entries[i].cookie)
			}
		}
	}
}

// A cookie is a number that no other entry has, and looks random: all its bits vary, so
// the books notice when a provider loses some of them.
//
//	tag:8 | number:56
//
// Dispatchers route by the tag. No route takes tags from untagged on.
const (
	tagShift  = 56
	routeMask = 0xff << tagShift
	untagged  = 0x80
	scrambler = 0x9e3779b97f4a7d // odd: two numbers times it differ modulo 2^56, too
)

// cookie returns a new cookie.
func (b *books) cookie(tag uint8) uint64 {
	return uint64(tag)<<tagShift | b.cookies.Add(1)*scrambler&^routeMask
}
