package iwarp

import (
	"runtime"
	"sync/atomic"

	"godat/hw"
	"godat/internal/yield"
)

// queuePair is a QP. Its owner makes the calls one at a time.
type queuePair struct {
	// Immutable.
	dev  *device
	zone *zone
	cfg  hw.QPConfig

	// leaving counts the calls that report the end of a queue and have not
	// returned; a life that follows completes nothing before they have.
	leaving atomic.Int32

	// The owner's; nil when closed.
	life *life
}

// vacant waits for those calls. They never block, and what waits here is a
// goroutine of a new connection, which none of them can be waiting for.
func (q *queuePair) vacant() {
	for q.leaving.Load() != 0 {
		runtime.Gosched()
	}
}

// NewQP makes a queue pair. A value beyond the device's limits is an
// INVALID_PARAMETER.
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	const op = "iwarp.NewQP"
	if err := checkConfig(op, &cfg); err != nil {
		return nil, err
	}
	z, err := d.useZone(op, cfg.Zone)
	if err != nil {
		return nil, err
	}
	if err := d.use(op, &d.qps, maxQPs, hw.ResourceTEP); err != nil {
		d.unuse(&z.users)
		return nil, err
	}
	q := &queuePair{dev: d, zone: z, cfg: cfg}
	q.life = newLife(q)
	return q, nil
}

func checkConfig(op string, cfg *hw.QPConfig) error {
	bad := func(why string) error { return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%s", why) }
	outside := func(n, limit int) bool { return n < 0 || n > limit }
	switch {
	case cfg.SRQ != nil:
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "no shared receive queues")
	case cfg.SendSink == nil || cfg.RecvSink == nil || cfg.Facts == nil:
		return bad("a sink or the facts are missing")
	case cfg.SendCQ != nil || cfg.RecvCQ != nil:
		return bad("the device has no completion queues")
	case outside(cfg.SendDepth, maxDepth) || outside(cfg.RecvDepth, maxDepth):
		return bad("depth")
	case outside(cfg.SendSegments, maxSegments) || outside(cfg.RecvSegments, maxSegments):
		return bad("segments")
	case outside(cfg.ReadsIn, maxReads) || outside(cfg.ReadsOut, maxReads):
		return bad("reads")
	case cfg.NotReady < 0:
		return bad("negative NotReady")
	}
	return nil
}

// sendable are the operations that PostSend takes.
const notSendable = 1<<hw.OpRecv | 1<<hw.OpRecvImm | 1<<hw.OpRecvInvalidate

// PostSend queues the requests and, if nobody else is at it, sends what the
// socket takes.
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	const op = "iwarp.PostSend"
	l := q.life
	if l == nil {
		return 0, gone(op)
	}
	if !l.up.Load() {
		l.mu.Lock()
		defer l.mu.Unlock()
		return 0, hw.Errorf(op, hw.InvalidState, l.state(), "the queue pair is not connected")
	}
	n := len(wrs)
	var err error
	for i := range wrs {
		if !l.agreed.ops.Has(wrs[i].Op) || len(wrs[i].SGL) > q.cfg.SendSegments {
			n, err = i, l.refusal(&wrs[i])
			break
		}
	}
	if k := l.sq.push(wrs[:n]); k < n {
		n, err = k, full(op, q.cfg.SendDepth)
	}
	yield.Point()
	if n > 0 {
		l.kick(posterBudget)
	}
	return n, err
}

// refusal says why a request can't be taken.
func (l *life) refusal(wr *hw.SendWR) error {
	const op = "iwarp.PostSend"
	if !l.agreed.ops.Has(wr.Op) {
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%v on this connection", wr.Op)
	}
	return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments of %d", len(wr.SGL), l.qp.cfg.SendSegments)
}

// PostRecv queues receives.
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "iwarp.PostRecv"
	l := q.life
	if l == nil {
		return 0, gone(op)
	}
	n := l.rq.push(wrs, q.cfg.RecvSegments)
	yield.Point()
	// Published above, looked at here; the receiver does it the other way around
	// when it leaves.
	if l.attention.Load()&(broken|idleRecv) == broken|idleRecv {
		l.kick(posterBudget)
	}
	if n == len(wrs) {
		return n, nil
	}
	if s := len(wrs[n].SGL); s > q.cfg.RecvSegments {
		return n, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments of %d", s, q.cfg.RecvSegments)
	}
	return n, full(op, q.cfg.RecvDepth)
}

func full(op string, depth int) error {
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "the queue of %d is full", depth)
}

func gone(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
}

// Drain has the connection's sending half closed when all is sent that was
// posted, and Down(ReasonDrained) reported when the peer has closed its own or
// the linger time is over.
func (q *queuePair) Drain() {
	if l := q.life; l != nil && l.up.Load() {
		l.attention.Or(draining)
		l.kick(posterBudget)
	}
}

// Break ends the connection. A second call does nothing.
func (q *queuePair) Break(orderly bool) {
	if q.life != nil {
		q.life.breakUp(orderly)
	}
}

// Reset gives the queue pair a new life, unless it has one that it has not used.
func (q *queuePair) Reset() error {
	const op = "iwarp.Reset"
	l := q.life
	switch {
	case l == nil:
		return gone(op)
	case l.over():
		q.life = newLife(q)
	case !l.pristine():
		return l.notOver(op)
	}
	return nil
}

// Close frees the queue pair.
func (q *queuePair) Close() error {
	const op = "iwarp.QP.Close"
	l := q.life
	switch {
	case l == nil:
		return gone(op)
	case !l.over() && !l.pristine():
		return l.notOver(op)
	}
	q.life = nil
	q.dev.unuse(&q.dev.qps)
	q.dev.unuse(&q.zone.users)
	return nil
}

func (l *life) notOver(op string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return hw.Errorf(op, hw.InvalidState, l.state(), "its queues have not both ended")
}
