package posts

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/ep"
)

// books holds all accounts of a run.
type books struct {
	complaints
	salt   uint64
	early  bool // a success does not mean that the message has arrived
	counts counts
	posted [2]atomic.Int64 // by direction

	mu       sync.RWMutex
	accounts []*account // by id; nil for those that are sealed

	endpoints sync.Map // *ep.Endpoint to *account
}

// counts is how often each thing happened, by its name, to show that everything did.
type counts struct {
	mu sync.Mutex
	of map[string]int64
}

func (c *counts) add(what fmt.Stringer, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]int64)
	}
	c.of[what.String()] += n
}

// thing is what happened, in words.
type thing string

func (t thing) String() string { return string(t) }

const (
	suppressed  thing = "suppressed"   // a request that succeeded without an event
	orphaned    thing = "orphaned"     // a connection that the provider ended before its planned end
	carriedOver thing = "carried over" // a receive that stayed posted through a reset
	lives       thing = "lives"
	refusals    thing = "refused"
)

// posts is how many posts were accepted.
func (b *books) posts() int64 { return b.posted[requests].Load() + b.posted[receives].Load() }

// open adds an account.
func (b *books) open(a *account) {
	b.mu.Lock()
	a.id = uint32(len(b.accounts))
	b.accounts = append(b.accounts, a)
	b.mu.Unlock()
}

// known adds the endpoint of an account, before any call on it.
func (b *books) known(a *account) { b.endpoints.Store(a.ep, a) }

// account returns the account with an id; nil if it is sealed or unknown.
func (b *books) account(id uint32) *account {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if int(id) >= len(b.accounts) {
		return nil
	}
	return b.accounts[id]
}

// of returns the account of an endpoint, or nil.
func (b *books) of(ep *ep.Endpoint) *account {
	a, _ := b.endpoints.Load(ep)
	found, _ := a.(*account)
	return found
}

// find returns the entry of a cookie, its page, and its number there.
func (b *books) find(cookie uint64) (p *page, e *entry, i uint32) {
	id, number, i, ok := decode(b.salt, cookie)
	if !ok {
		return nil, nil, 0
	}
	a := b.account(id)
	if a == nil {
		return nil, nil, 0
	}
	l := &a.lanes[requests]
	if number >= firstReceivePage {
		l, number = &a.lanes[receives], number-firstReceivePage
	}
	if int(number) >= len(l.pages) {
		return nil, nil, 0
	}
	p = l.pages[number]
	if i >= p.begun.Load() || p.entries[i].cookie != cookie {
		return nil, nil, 0
	}
	return p, &p.entries[i], i
}

// seal removes an account, and its pages with it: every event of its endpoint has
// come.
func (b *books) seal(a *account) {
	b.endpoints.Delete(a.ep)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a.id] = nil
}

// A cookie names an entry of the books and looks random: all its bits vary, so the
// books notice when a provider loses some of them.
//
//	tag:8 | scrambled(check:4 | account:24 | page:6 | entry:22)
//
// Dispatchers route by the tag. No route takes tags from untagged on.
const (
	tagShift   = 56
	codeBits   = 56
	codeMask   = 1<<codeBits - 1
	entryBits  = 22
	pageBits   = 6
	accountPos = entryBits + pageBits
	maxAccount = 1<<24 - 1

	routeMask = 0xff << tagShift
	untagged  = 0x80
)

// The scrambler multiplies by an odd number modulo 2^56; the unscrambler, its inverse,
// undoes it.
const (
	scrambler   = 0x9e3779b97f4a7d
	unscrambler = 0x3142d32a1bfed5
	halfOfCode  = codeBits / 2
)

// encode returns the cookie of an entry.
func encode(salt uint64, tag uint8, account, page, entry uint32) uint64 {
	x := uint64(account)<<accountPos | uint64(page)<<entryBits | uint64(entry)
	x = (x ^ salt) & codeMask
	x = x * scrambler & codeMask
	x ^= x >> halfOfCode
	x = x * scrambler & codeMask
	return uint64(tag)<<tagShift | x
}

// decode returns what a cookie names; ok is false if its check bits are wrong, as
// they are in 15 of 16 numbers that encode has not made.
func decode(salt, cookie uint64) (account, page, entry uint32, ok bool) {
	x := cookie & codeMask
	x = x * unscrambler & codeMask
	x ^= x >> halfOfCode
	x = x * unscrambler & codeMask
	x = (x ^ salt) & codeMask
	account = uint32(x >> accountPos)
	return account, uint32(x>>entryBits) & (1<<pageBits - 1), uint32(x) & (1<<entryBits - 1), account <= maxAccount
}
