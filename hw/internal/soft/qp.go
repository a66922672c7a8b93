package soft

import (
	"sync/atomic"

	"godat/hw"
)

// QP is the part of a queue pair that does not depend on how the provider moves octets: what it
// was made for, and what it may reach. Its owner makes the calls one at a time.
type QP struct {
	// Immutable once opened: a peer that answers late may look at a closed queue pair.
	Zone *Zone
	Cfg  hw.QPConfig // without a receive depth if receives come from a shared queue
	dev  *Device
	srq  *SRQ

	life   *Life       // the present one
	closed atomic.Bool // any goroutine may ask for a window
	Scope  Zone        // only its address matters: it stands for the queue pair's own windows
}

// Open makes the QP for a configuration, with the queue behind cfg.SRQ, if there is one. It fails
// with INVALID_PARAMETER if a value is beyond the device's limits.
func (q *QP) Open(d *Device, cfg *hw.QPConfig, srq *SRQ) error {
	const op = "NewQP"
	if err := d.CheckQP(op, cfg); err != nil {
		return err
	}
	z, err := d.UseZone(op, cfg.Zone)
	if err != nil {
		return err
	}
	q.Zone, q.Cfg, q.dev = z, *cfg, d
	if cfg.SRQ != nil {
		if err := srq.Attach(op, d, z); err != nil {
			z.Unuse()
			return err
		}
		q.srq, q.Cfg.RecvDepth = srq, 0
	}
	if err := d.Use(op, QPs); err != nil {
		q.srq.Detach()
		z.Unuse()
		return err
	}
	return nil
}

// Free undoes Open.
func (q *QP) Free() {
	q.srq.Detach()
	q.dev.Unuse(QPs)
	q.Zone.Unuse()
	q.closed.Store(true)
}

// self is the QP of a provider's queue pair, which embeds it.
func (q *QP) self() *QP { return q }

// Own returns the provider's queue pair P behind qp, and its QP; nil if it is another's.
func Own[P interface {
	comparable
	self() *QP
}](qp hw.QP) (own P, q *QP) {
	var none P
	if own, _ = qp.(P); own != none {
		q = own.self()
	}
	return own, q
}

// View returns the part of the device's table that the queue pair may reach.
func (q *QP) View() View { return NewView(&q.dev.Keys, q) }

// CheckSend returns an error if a post must refuse a request. ops are the operations that it takes.
func (q *QP) CheckSend(wr *hw.SendWR, ops hw.OpSet) error {
	const op = "PostSend"
	switch {
	case !ops.Has(wr.Op):
		return q.dev.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%v on this connection", wr.Op)
	case len(wr.SGL) > q.Cfg.SendSegments:
		return q.dev.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue pair was made for %d", len(wr.SGL), q.Cfg.SendSegments)
	case wr.Op == hw.OpBind:
		return q.dev.CheckBind(wr.Bind)
	}
	return nil
}

// Gone is the error of a call of a closed queue pair.
func (d *Device) Gone(op string) error {
	return d.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
}

// Full is the error of a post to a queue that has no room.
func (q *QP) Full(op string, depth int) error {
	return q.dev.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "the queue, of depth %d, is full", depth)
}

// RecvRefusal says why a receive was not taken.
func (q *QP) RecvRefusal(wr *hw.RecvWR) error {
	const op = "PostRecv"
	if q.srq != nil {
		return q.dev.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "receives come from the shared receive queue")
	}
	if n := len(wr.SGL); n > q.Cfg.RecvSegments {
		return q.dev.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue pair was made for %d", n, q.Cfg.RecvSegments)
	}
	return q.Full(op, q.Cfg.RecvDepth)
}

// CheckPrivate returns an error if data is more than the device takes with a call of the
// connection's set-up. arg is the argument that the error names.
func (d *Device) CheckPrivate(op string, arg hw.Subtype, data []byte) error {
	if most := d.cfg.Attr.MaxPrivate; len(data) > most {
		return d.Errorf(op, hw.InvalidParameter, arg, "%d bytes of private data; at most %d fit", len(data), most)
	}
	return nil
}

// CheckQP checks a queue pair's configuration against the device's limits.
func (d *Device) CheckQP(op string, cfg *hw.QPConfig) error {
	a := &d.cfg.Attr
	bad := func(why string) error { return d.Errorf(op, hw.InvalidParameter, hw.Arg1, "%s", why) }
	outside := func(n, limit int) bool { return n < 0 || n > limit }
	switch {
	case cfg.SendSink == nil || cfg.RecvSink == nil || cfg.Facts == nil:
		return bad("a sink or the facts are missing")
	case cfg.SendCQ != nil || cfg.RecvCQ != nil:
		return bad("the device has no completion queues")
	case outside(cfg.SendDepth, a.MaxDepth) || outside(cfg.RecvDepth, a.MaxDepth):
		return bad("depth")
	case outside(cfg.SendSegments, a.MaxSendSegments) || outside(cfg.RecvSegments, a.MaxRecvSegments):
		return bad("segments")
	case outside(cfg.ReadsIn, a.MaxReadsIn) || outside(cfg.ReadsOut, a.MaxReadsOut):
		return bad("reads")
	case cfg.NotReady < 0:
		return bad("negative NotReady")
	}
	return nil
}
