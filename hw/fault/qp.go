package fault

import (
	"sync"
	"time"

	"godat/hw"
)

// queuePair wraps a queue pair. The wrapper owns the inner queue pair; "the owner" in
// these comments is the wrapper's user. calls serializes Break by the owner and Break by
// a fault, and the owner sees the facts and completions that the contract promises in
// either case.
type queuePair struct {
	// Immutable.
	dev    *device
	inner  hw.QP
	cfg    hw.QPConfig // the owner's
	index  int
	number uint64 // in the order of creation; picks its faults

	calls   sync.Mutex // serializes calls on inner; taken before mu
	scratch []hw.SendWR
	rcvs    []hw.RecvWR
	poison  [1]hw.SGE

	mu      sync.Mutex
	queues  [2]queue
	up      bool // Established was told
	down    bool // Down was told, or is about to be
	broken  bool // the owner called Break
	severed bool // a fault broke the connection
	lost    bool // the peer is silent: sends don't reach it
	tell    bool // settle must tell Down
	telling bool // Down was not told yet: no queue ends
	ops     uint64
	life    int
}

// innerConfig is the configuration of the inner queue pair: the owner's, with the
// wrapper's sinks, ids and facts.
func (q *queuePair) innerConfig() hw.QPConfig {
	cfg := q.cfg
	for i := range q.queues {
		q.queues[i].qp, q.queues[i].dir = q, direction(i)
	}
	q.poison[0] = hw.SGE{Addr: poisonAt, Len: poisonLen}
	if cfg.SendSink != nil {
		q.queues[sending].sink, cfg.SendSink = cfg.SendSink, &q.queues[sending]
	}
	if cfg.RecvSink != nil {
		q.queues[receiving].sink, cfg.RecvSink = cfg.RecvSink, &q.queues[receiving]
	}
	if c, ok := cfg.SendCQ.(*completionQueue); ok {
		q.queues[sending].cq, cfg.SendCQ = c, c.CQ
	}
	if c, ok := cfg.RecvCQ.(*completionQueue); ok {
		q.queues[receiving].cq, cfg.RecvCQ = c, c.CQ
	}
	if s := wrapped(cfg.SRQ); s != nil {
		cfg.SRQ, cfg.Number = s.SRQ, uint32(q.index)
	}
	if cfg.Facts != nil {
		cfg.Facts = facts{cfg.Facts, q}
	}
	cfg.SendEnd = makeID(idEnd, q.index, uint32(sending))
	cfg.RecvEnd = makeID(idEnd, q.index, uint32(receiving))
	return cfg
}

// Unwrap returns the inner queue pair.
func (q *queuePair) Unwrap() hw.QP { return q.inner }

// Flow implements [hw.Flowing], of which a fault changes nothing.
func (q *queuePair) Flow() (f hw.Flow, ok bool) {
	if inner, tells := q.inner.(hw.Flowing); tells {
		return inner.Flow()
	}
	return hw.Flow{}, false
}

// The range of poisonLen bytes at poisonAt lies in no region, whatever the key.
const (
	poisonAt  = ^uint64(0) - 15
	poisonLen = 8
)

// PostSend implements [hw.QP].
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	q.calls.Lock()
	n, sever, err := q.postSend(wrs)
	if sever {
		q.severLocked()
	}
	q.calls.Unlock()
	q.settle()
	return n, err
}

// postSend posts requests to the inner queue pair up to the loss or the break of the
// connection, and keeps the rest. It reports whether the caller must break the
// connection now.
func (q *queuePair) postSend(wrs []hw.SendWR) (n int, sever bool, err error) {
	f := q.dev.fault
	q.scratch = append(q.scratch[:0], wrs...)
	q.mu.Lock()
	pass := len(wrs) // how many requests the inner queue pair gets
	s := &q.queues[sending]
	for i := range q.scratch {
		wr := &q.scratch[i]
		e := entry{id: wr.ID}
		q.ops++
		if q.up && !q.down && !q.lost {
			if f.hits(LosePeer, q.number, q.ops) {
				q.lost = true
				q.dev.worker.at(time.Now().Add(f.cfg.Bound), task{qp: q, life: q.life, sever: true})
			}
			sever = f.hits(BreakConn, q.number, q.ops) || sever
			e.delay = f.hits(DelaySend, q.number, q.ops)
			if q.cfg.SendSegments > 0 && q.dev.attr.Ops.Has(wr.Op) && f.hits(FailSend, q.number, q.ops) {
				e.poisoned = true
				q.poisonSend(wr)
			}
		}
		if (q.lost || q.severed) && i < pass {
			pass = i
		}
		e.local = i >= pass
		wr.ID = makeID(idSend, q.index, s.push(e))
	}
	q.mu.Unlock()
	if pass > 0 || len(wrs) == 0 {
		n, err = q.inner.PostSend(q.scratch[:pass])
	}
	if err == nil {
		n, err = q.keep(wrs, pass)
	}
	if n < len(wrs) {
		q.mu.Lock()
		s.pop(len(wrs) - n)
		q.mu.Unlock()
	}
	return n, sever, err
}

// keep accepts the requests from i on, or refuses one as the inner device would.
func (q *queuePair) keep(wrs []hw.SendWR, i int) (int, error) {
	for ; i < len(wrs); i++ {
		if op := wrs[i].Op; !q.dev.attr.Ops.Has(op) {
			return i, hw.Errorf("fault.PostSend", hw.ModelNotSupported, hw.NoSubtype, "no %v", op)
		}
	}
	return i, nil
}

// poisonSend replaces a request by one that must fail on this side.
func (q *queuePair) poisonSend(wr *hw.SendWR) {
	*wr = hw.SendWR{ID: wr.ID, Op: hw.OpSend, Flags: wr.Flags, SGL: q.poison[:]}
	if q.dev.attr.Ops.Has(hw.OpWrite) {
		wr.Op = hw.OpWrite // unlike a send, a write waits for no receive
	}
}

// PostRecv implements [hw.QP].
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	q.calls.Lock()
	defer q.settle()
	defer q.calls.Unlock()
	q.rcvs = append(q.rcvs[:0], wrs...)
	q.mu.Lock()
	severed := q.severed
	r := &q.queues[receiving]
	for i := range q.rcvs {
		wr := &q.rcvs[i]
		q.ops++
		e := entry{id: wr.ID, local: severed}
		if !severed && q.cfg.RecvSegments > 0 && q.dev.fault.hits(FailRecv, q.number, q.ops) {
			e.poisoned, wr.SGL = true, q.poison[:]
		}
		wr.ID = makeID(idRecv, q.index, r.push(e))
	}
	q.mu.Unlock()
	if severed {
		return len(wrs), nil
	}
	n, err := q.inner.PostRecv(q.rcvs)
	if n < len(wrs) {
		q.mu.Lock()
		r.pop(len(wrs) - n)
		q.mu.Unlock()
	}
	return n, err
}

// Connect implements [hw.QP].
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	if err := q.dev.fault.call(FailConnect, "fault.Connect", hw.NoSubtype); err != nil {
		return err
	}
	q.calls.Lock()
	defer q.calls.Unlock()
	return q.inner.Connect(cfg)
}

// Drain implements [hw.QP]. It does nothing once the peer is lost, since the worker will
// break the connection, or once a fault has broken it.
func (q *queuePair) Drain() {
	q.calls.Lock()
	defer q.calls.Unlock()
	q.mu.Lock()
	idle := q.severed || q.lost
	q.mu.Unlock()
	if !idle {
		q.inner.Drain()
	}
}

// Break implements [hw.QP].
func (q *queuePair) Break(orderly bool) {
	q.calls.Lock()
	q.mu.Lock()
	q.broken = true
	severed := q.severed
	q.mu.Unlock()
	if !severed {
		q.inner.Break(orderly)
	}
	q.calls.Unlock()
	q.settle()
}

// sever breaks the connection of that life as if the transport had. The worker calls it.
func (q *queuePair) sever(life int) {
	q.calls.Lock()
	q.mu.Lock()
	same := q.life == life
	q.mu.Unlock()
	if same {
		q.severLocked()
	}
	q.calls.Unlock()
	q.settle()
}

// severLocked is sever with calls held. It leaves telling Down to settle, which the
// caller calls after it has released calls.
func (q *queuePair) severLocked() {
	q.mu.Lock()
	if !q.up || q.down || q.broken {
		q.mu.Unlock()
		return
	}
	q.severed, q.down, q.tell, q.telling = true, true, true, true
	q.mu.Unlock()
	q.inner.Break(false)
}

// settle tells Down when severLocked left that to it, and hands on the completions that
// are due.
func (q *queuePair) settle() {
	q.mu.Lock()
	tell := q.tell
	q.tell = false
	q.mu.Unlock()
	if tell {
		q.cfg.Facts.Down(hw.ReasonBroken, &hw.Cause{Text: "injected fault"})
		q.mu.Lock()
		q.telling = false
		q.mu.Unlock()
	}
	for i := range q.queues {
		q.queues[i].progress()
	}
}

// Reset implements [hw.QP].
func (q *queuePair) Reset() error {
	q.calls.Lock()
	defer q.calls.Unlock()
	if err := q.refuseAlive("fault.Reset"); err != nil {
		return err
	}
	if err := q.inner.Reset(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.up, q.down, q.broken, q.severed, q.lost = false, false, false, false, false
	q.life++
	for i := range q.queues {
		q.queues[i].reset()
	}
	return nil
}

// Close implements [hw.QP].
func (q *queuePair) Close() error {
	q.calls.Lock()
	defer q.calls.Unlock()
	if err := q.refuseAlive("fault.Close"); err != nil {
		return err
	}
	if err := q.inner.Close(); err != nil {
		return err
	}
	q.mu.Lock()
	q.life++ // makes sever ignore the worker's remaining tasks
	q.mu.Unlock()
	q.dev.forget(q)
	return nil
}

// refuseAlive returns an error while the queues of a severed queue pair have not ended.
// The inner queue pair would allow Reset and Close then, since sever broke it and it has
// ended, although the owner has not called Break.
func (q *queuePair) refuseAlive(op string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.severed && !(q.queues[sending].ended && q.queues[receiving].ended) {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queues have not ended")
	}
	return nil
}

// facts passes facts on to the owner.
type facts struct {
	hw.Facts // the owner's
	q        *queuePair
}

// Established implements [hw.Facts].
func (f facts) Established(info hw.ConnInfo) {
	f.q.mu.Lock()
	f.q.up = true
	when := f.q.ops
	f.q.mu.Unlock()
	if !f.q.dev.fault.hits(LoseEstablished, f.q.number, when) {
		f.Facts.Established(info)
	}
}

// Down implements [hw.Facts]. When a fault broke the connection, settle tells the owner,
// and Down passes nothing on.
func (f facts) Down(why hw.Reason, cause *hw.Cause) {
	f.q.mu.Lock()
	told := f.q.down
	f.q.down = true
	f.q.mu.Unlock()
	if !told {
		f.Facts.Down(why, cause)
	}
}
