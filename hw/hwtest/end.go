package hwtest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
)

// end is one end of a connection: a queue pair and its owner. The owner makes one call
// at a time, records facts and completions, and checks them against the contract.
type end struct {
	host  *host
	index int
	cfg   hw.QPConfig
	qp    hw.QP
	cqs   []hw.CQ // completion queues that only this end uses

	calls  sync.Mutex    // serializes calls on qp
	orders atomic.Uint64 // changed between RecvRun and Kick, which it orders
	answer atomic.Pointer[answer]

	mu     sync.Mutex
	cond   sync.Cond
	life   int
	books  [2]book
	broken bool
	closed bool
	info   *hw.ConnInfo // of Established; nil before it
	// Reasons of Refused and Down; ReasonNone before them.
	refused, down hw.Reason
	refusal       []byte    // private data of Refused
	cause         *hw.Cause // of Refused or Down
	bad           []string  // violations
}

// An id is tag | index of the end | life | queue | sequence, in all 64 bits.
const (
	idTag        = 1 << 63
	idEndShift   = 48
	idEndMask    = 1<<15 - 1
	idLifeShift  = 40
	idQueueShift = 32
	idEnd        = 1<<32 - 1
)

func (e *end) id(q direction, seq uint32) uint64 {
	return idTag | uint64(e.index)<<idEndShift | uint64(e.life&0xff)<<idLifeShift | uint64(q)<<idQueueShift | uint64(seq)
}

// endOf is the index of the end in an id.
func endOf(id uint64) int { return int(id >> idEndShift & idEndMask) }

// sink implements [hw.Sink] for one queue of an end.
type sink struct {
	end   *end
	queue direction
	busy  atomic.Bool
}

// Complete implements [hw.Sink].
func (s *sink) Complete(wcs []hw.WC) {
	if !s.busy.CompareAndSwap(false, true) {
		s.end.violate("two goroutines in a sink at once")
	}
	s.end.mu.Lock()
	for _, wc := range wcs {
		s.end.completeLocked(s.queue, wc)
	}
	s.busy.Store(false) // before a case sees the queue's end, after which another life may begin
	s.end.mu.Unlock()
	s.end.cond.Broadcast()
	s.end.answers()
}

func (e *end) completeLocked(q direction, wc hw.WC) {
	if q == recvQueue && pooled(wc.ID) {
		completePooled(e, wc)
		return
	}
	if bad := e.books[q].complete(wc, e.broken); bad != "" {
		e.bad = append(e.bad, bad)
	}
}

func (e *end) violate(bad string) {
	e.mu.Lock()
	e.bad = append(e.bad, bad)
	e.mu.Unlock()
}

// begin begins a life, with new books.
func (e *end) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.books[sendQueue] = book{queue: "send", endID: e.cfg.SendEnd}
	e.books[recvQueue] = book{queue: "receive", endID: e.cfg.RecvEnd}
	e.broken, e.info, e.refusal = false, nil, nil
	e.refused, e.down, e.cause = hw.ReasonNone, hw.ReasonNone, nil
}

// wait waits until ok returns true, and reports whether it does in time. It calls ok with
// the end locked.
func (e *end) wait(ok func() bool) bool { return waitFor(&e.cond, e.host.rig.cfg.Patience, ok) }

// waitFor waits until ok returns true or limit has passed, and returns what ok returns
// then. It calls ok with c.L locked.
func waitFor(c *sync.Cond, limit time.Duration, ok func() bool) bool {
	late := false
	timer := time.AfterFunc(limit, func() {
		c.L.Lock()
		late = true
		c.L.Unlock()
		c.Broadcast()
	})
	defer timer.Stop()
	c.L.Lock()
	defer c.L.Unlock()
	for !ok() && !late {
		c.Wait()
	}
	return ok()
}

// mustWait fails the test when send i, which waits for a receive, completes or the
// connection ends within a quarter of shortWait.
func (e *end) mustWait(i int) {
	if waitFor(&e.cond, shortWait/4, func() bool { return e.books[sendQueue].entries[i].done || e.down != hw.ReasonNone }) {
		e.host.rig.also.Failf("a send that is to wait for a receive did not", "%s: %s", e.name(), e.dump())
	}
}

// await is wait for the test's own goroutine; it ends the test when ok is not true in
// time.
func (e *end) await(what string, ok func() bool) {
	if !e.wait(ok) {
		e.host.rig.must.Failf("waited in vain", "%s: for %s\n%s", e.name(), what, e.dump())
	}
}

func (e *end) name() string { return fmt.Sprintf("%s/%d", e.host.name, e.index) }

func (e *end) dump() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := fmt.Sprintf("established %v, refused %q, down %q, broken %v, violations %q", e.info != nil, e.refused, e.down, e.broken, e.bad)
	for i := range e.books {
		b := &e.books[i]
		s += fmt.Sprintf("\n%s queue: %d posted, %d accounted for, failed %v, ended %v", b.queue, len(b.entries), b.head, b.failed, b.ended)
	}
	return s
}

// tryPost posts sends under ids of its own. It returns the index of the first send and
// the results of PostSend. After the post it overwrites the array, as the contract allows.
func (e *end) tryPost(wrs ...hw.SendWR) (first, n int, err error) {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.mu.Lock()
	own := slices.Clone(wrs)
	for i := range own {
		wr := &own[i]
		wr.ID = e.id(sendQueue, uint32(len(e.books[sendQueue].entries)))
		at := e.books[sendQueue].post(entry{
			id: wr.ID, op: reported(wr.Op), length: uint32(total(wr.SGL)), signaled: wr.Flags&hw.WRSignaled != 0,
		})
		if i == 0 {
			first = at
		}
	}
	e.mu.Unlock()
	n = e.postRun(own)
	if n == len(own) && n > 0 {
		return first, n, nil
	}
	k, err := e.qp.PostSend(own[n:])
	n += k
	for i := range own {
		own[i] = hw.SendWR{ID: ^uint64(0), Op: 0xff, RKey: 0xdeadbeef, RemoteAddr: ^uint64(0)}
	}
	e.refusedPosts(sendQueue, len(wrs), n, err)
	return first, n, err
}

// tryRecv is tryPost for receives.
func (e *end) tryRecv(sgls ...[]hw.SGE) (first, n int, err error) {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.mu.Lock()
	own := make([]hw.RecvWR, len(sgls))
	for i := range own {
		own[i] = hw.RecvWR{ID: e.id(recvQueue, uint32(len(e.books[recvQueue].entries))), SGL: sgls[i]}
		at := e.books[recvQueue].post(entry{id: own[i].ID, op: hw.OpRecv, signaled: true})
		if i == 0 {
			first = at
		}
	}
	e.mu.Unlock()
	if len(own) == 1 && e.recvRun(&own[0]) {
		return first, 1, nil
	}
	n, err = e.qp.PostRecv(own)
	for i := range own {
		own[i] = hw.RecvWR{ID: ^uint64(0)}
	}
	e.refusedPosts(recvQueue, len(sgls), n, err)
	return first, n, err
}

// refusedPosts removes the requests that a post did not take from the book, and checks
// the results of the post.
func (e *end) refusedPosts(q direction, posted, n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	bad := ""
	switch {
	case n < 0 || n > posted:
		bad = fmt.Sprintf("a post of %d took %d", posted, n)
	case (n < posted) != (err != nil):
		bad = fmt.Sprintf("a post of %d took %d with error %v", posted, n, err)
	default:
		bad = e.books[q].unpost(posted - n)
	}
	if bad != "" {
		e.bad = append(e.bad, bad)
	}
}

// post posts sends that the queue pair must take, and returns the index of the first.
func (e *end) post(wrs ...hw.SendWR) int {
	first, _, err := e.tryPost(wrs...)
	e.host.rig.must.NoError(err)
	return first
}

// recv posts one receive of the given segments, and returns its index.
func (e *end) recv(sgl ...hw.SGE) int {
	first, _, err := e.tryRecv(sgl)
	e.host.rig.must.NoError(err)
	return first
}

// sent waits for the completion of send i.
func (e *end) sent(i int) hw.WC { return e.completion(sendQueue, i) }

// received waits for the completion of receive i.
func (e *end) received(i int) hw.WC { return e.completion(recvQueue, i) }

func (e *end) completion(q direction, i int) (wc hw.WC) {
	e.await(fmt.Sprintf("completion %d of the %s queue", i, e.books[q].queue), func() bool {
		wc = e.books[q].entries[i].wc
		return e.books[q].entries[i].done
	})
	return wc
}

// breakNow calls Break and notes that it did.
func (e *end) breakNow(orderly bool) {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.mu.Lock()
	e.broken = true
	e.mu.Unlock()
	e.qp.Break(orderly)
}

// drain calls Drain.
func (e *end) drain() {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.qp.Drain()
}

// awaitEnd waits until both queues have ended.
func (e *end) awaitEnd() {
	e.await("the end of both queues", e.overLocked)
}

func (e *end) overLocked() bool { return e.books[sendQueue].ended && e.books[recvQueue].ended }

// awaitUp, awaitRefused and awaitDown wait for a fact.
func (e *end) awaitUp() hw.ConnInfo {
	e.await("Established", func() bool { return e.info != nil })
	return *e.info
}

func (e *end) awaitRefused() (why hw.Reason, private []byte) {
	e.await("Refused", func() bool { return e.refused != hw.ReasonNone })
	return e.refused, e.refusal
}

func (e *end) awaitDown() hw.Reason {
	e.await("Down", func() bool { return e.down != hw.ReasonNone })
	return e.down
}

// over ends a life: it calls Break, unless the case has, and waits for the end of both
// queues.
func (e *end) over() {
	e.mu.Lock()
	broken := e.broken
	e.mu.Unlock()
	if !broken {
		e.breakNow(false)
	}
	e.awaitEnd()
}

// over ends the lives of several ends, one after the other.
func over(ends ...*end) {
	for _, e := range ends {
		e.over()
	}
}

// reset begins a new life after over.
func (e *end) reset() {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.host.rig.must.NoError(e.qp.Reset())
	e.mu.Lock()
	e.life++
	e.mu.Unlock()
	e.begin()
}

// close closes the queue pair and its completion queues.
func (e *end) close() {
	e.calls.Lock()
	defer e.calls.Unlock()
	e.host.rig.must.NoError(e.qp.Close())
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, cq := range e.cqs {
		e.host.rig.must.NoError(cq.Close())
	}
	e.cqs = nil
}

// statuses lists the statuses of a queue's requests.
func (e *end) statuses(q direction) []hw.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.books[q].statuses()
}
