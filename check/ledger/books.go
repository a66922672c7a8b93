package ledger

import (
	"sync"
	"sync/atomic"

	dat "godat/runtime"
)

// books are all accounts of a run.
type books struct {
	complaints
	salt   uint64
	early  bool // success does not mean arrival
	counts counts

	mu       sync.RWMutex
	accounts []*account // by id; all that there ever were

	endpoints sync.Map // *dat.Endpoint to *account
}

// counts are what has been done, to show that it was.
type counts struct {
	posted   [2]atomic.Int64 // by direction
	refused  atomic.Int64
	events   [styles + 2]atomic.Int64 // by how they were got
	statuses [16]atomic.Int64
	ops      [8]atomic.Int64
	quiet    atomic.Int64 // suppressed posts that succeeded
	attempts [attempts]atomic.Int64
	endings  [endings]atomic.Int64
	orphans  atomic.Int64 // ended by the provider before their planned end
	lives    atomic.Int64
	carried  atomic.Int64 // receives that lived through a reset
}

// open enters an account.
func (b *books) open(a *account) {
	b.mu.Lock()
	a.id = uint32(len(b.accounts))
	b.accounts = append(b.accounts, a)
	b.mu.Unlock()
}

// known enters the endpoint of an account, before anything can happen on it.
func (b *books) known(a *account) { b.endpoints.Store(a.ep, a) }

// account finds an account by id.
func (b *books) account(id uint32) *account {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if int(id) >= len(b.accounts) {
		return nil
	}
	return b.accounts[id]
}

// of finds the account of an endpoint.
func (b *books) of(ep *dat.Endpoint) *account {
	a, _ := b.endpoints.Load(ep)
	found, _ := a.(*account)
	return found
}

// find finds the entry of a cookie, and its number on its page.
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

// seal closes an account: every event of its endpoint has come. Its pages are
// forgotten.
func (b *books) seal(a *account) {
	b.endpoints.Delete(a.ep)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a.id] = nil
}
