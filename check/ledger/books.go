package ledger

import (
	"sync"
	"sync/atomic"

	dat "godat/runtime"
)

// books holds all accounts of a run.
type books struct {
	complaints
	salt   uint64
	early  bool // a success does not mean that the message has arrived
	counts counts

	mu       sync.RWMutex
	accounts []*account // by id; nil for those that are sealed

	endpoints sync.Map // *dat.Endpoint to *account
}

// counts counts what a run did, to show that it did everything.
type counts struct {
	posted   [2]atomic.Int64 // by direction
	refused  atomic.Int64
	events   [styles + 2]atomic.Int64 // by the style of the consumer that got them
	statuses [16]atomic.Int64
	ops      [8]atomic.Int64
	quiet    atomic.Int64 // suppressed posts that succeeded
	attempts [attempts]atomic.Int64
	endings  [endings]atomic.Int64
	orphans  atomic.Int64 // connections that the provider ended before their planned end
	lives    atomic.Int64
	carried  atomic.Int64 // receives that stayed posted through a reset
}

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
func (b *books) of(ep *dat.Endpoint) *account {
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
