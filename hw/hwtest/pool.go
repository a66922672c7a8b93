package hwtest

import (
	"fmt"
	"sync"

	"godat/hw"
)

// pool is a shared receive queue with its book. It checks that each receive completes
// once, on the queue pair that WC.QP names, and that each queue pair takes receives in
// order.
type pool struct {
	host  *host
	index int
	srq   hw.SRQ

	mu      sync.Mutex
	cond    sync.Cond
	entries []poolEntry
	last    map[*end]int // index of the newest receive that an end took
	turns   int          // number of completions
	lows    int          // number of calls of OnLow
	// anyOrder says that several goroutines post, so that the order is not known.
	anyOrder bool
	closed   bool
}

// poolEntry is one receive.
type poolEntry struct {
	done bool
	wc   hw.WC
	by   *end
	turn int // number of receives that completed before it
}

// idPool stands in the ids of a pool's receives in place of an end's index; the pool's
// index stands in place of the end's life.
const idPool = idEndMask

func pooled(id uint64) bool { return id&idTag != 0 && endOf(id) == idPool }

// newPool makes a shared receive queue.
func (h *host) newPool(zone hw.Zone, depth, segments int) *pool {
	p := &pool{host: h, index: len(h.pools), last: make(map[*end]int)}
	p.cond.L = &p.mu
	var err error
	p.srq, err = h.dev.(hw.SharedReceiver).NewSRQ(hw.SRQConfig{
		Zone: zone, Depth: depth, Segments: segments, OnLow: p.onLow,
	})
	h.rig.must.NoError(err)
	h.pools = append(h.pools, p)
	h.later = append(h.later, func() {
		if !p.closed {
			h.rig.also.NoError(p.srq.Close())
		}
	})
	return p
}

func (p *pool) onLow() {
	p.mu.Lock()
	p.lows++
	p.mu.Unlock()
	p.cond.Broadcast()
}

// from makes a queue pair of the pool's host take its receives from the pool.
func (p *pool) from() option {
	return func(c *hw.QPConfig) { c.SRQ, c.Number = p.srq, uint32(len(p.host.ends)) }
}

// tryPost posts one receive for each list of segments. Any goroutine may call it.
func (p *pool) tryPost(sgls ...[]hw.SGE) (first, n int, err error) {
	p.mu.Lock()
	first = len(p.entries)
	wrs := make([]hw.RecvWR, len(sgls))
	for i, sgl := range sgls {
		wrs[i] = hw.RecvWR{ID: idTag | idPool<<idEndShift | uint64(p.index)<<idLifeShift | uint64(len(p.entries)), SGL: sgl}
		p.entries = append(p.entries, poolEntry{})
	}
	p.mu.Unlock()
	n, err = p.srq.PostRecv(wrs)
	if n < len(wrs) { // no other goroutine posts in a case that lets a post fail
		p.mu.Lock()
		p.entries = p.entries[:first+n]
		p.mu.Unlock()
	}
	for i := range wrs {
		wrs[i] = hw.RecvWR{ID: ^uint64(0)}
	}
	return first, n, err
}

// post posts a receive that the queue must take, and returns its index.
func (p *pool) post(sgl ...hw.SGE) int {
	first, _, err := p.tryPost(sgl)
	p.host.rig.must.NoError(err)
	return first
}

// complete records a completion on an end's receive queue, and returns a violation or "".
func (p *pool) complete(e *end, wc hw.WC) string {
	p.mu.Lock()
	defer p.cond.Broadcast()
	defer p.mu.Unlock()
	i := int(uint32(wc.ID))
	switch {
	case i >= len(p.entries):
		return fmt.Sprintf("shared receive %d was never posted", i)
	case p.entries[i].done:
		return fmt.Sprintf("shared receive %d completes twice", i)
	case wc.QP != uint32(e.index):
		return fmt.Sprintf("shared receive %d names the queue pair %d, on %d", i, wc.QP, e.index)
	}
	if last, some := p.last[e]; some && last >= i && !p.anyOrder {
		return fmt.Sprintf("%s took the shared receive %d after %d", e.name(), i, last)
	}
	p.last[e] = i
	p.entries[i] = poolEntry{done: true, wc: wc, by: e, turn: p.turns}
	p.turns++
	return ""
}

// completePooled is completeLocked for a receive from a pool.
func completePooled(e *end, wc hw.WC) {
	h := e.host
	i := int(wc.ID >> idLifeShift & 0xff)
	h.mu.Lock()
	var p *pool
	if i < len(h.pools) {
		p = h.pools[i]
	}
	h.mu.Unlock()
	b := &e.books[recvQueue]
	bad := ""
	switch {
	case p == nil || e.cfg.SRQ != p.srq:
		bad = fmt.Sprintf("completion %#x is of a pool that is not the queue pair's", wc.ID)
	case b.ended:
		bad = fmt.Sprintf("a shared receive (%v) after the queue's end", wc.Status)
	case wc.Status == hw.StatusSuccess && b.failed:
		bad = "a shared receive succeeded behind one that failed"
	default:
		bad = p.complete(e, wc)
	}
	b.failed = b.failed || wc.Status != hw.StatusSuccess
	if bad != "" {
		e.bad = append(e.bad, bad)
	}
}

// wait waits until ok returns true, and fails the test when it doesn't in time. It calls
// ok with the pool locked.
func (p *pool) wait(what string, ok func() bool) {
	if !waitFor(&p.cond, p.host.rig.cfg.Patience, ok) {
		p.host.rig.must.Failf("waited in vain", "for %s", what)
	}
}

// received waits for the completion of receive i, and returns the end that took it, too.
func (p *pool) received(i int) (wc hw.WC, by *end) {
	var e poolEntry
	p.wait(fmt.Sprintf("shared receive %d", i), func() bool { e = p.entries[i]; return e.done })
	return e.wc, e.by
}

// taken is the number of receives that have completed.
func (p *pool) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns
}

func (p *pool) low() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lows
}

func (p *pool) close() {
	p.closed = true
	p.host.rig.must.NoError(p.srq.Close())
}
