//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"net"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/reject"
)

// request implements [hw.Request].
type request struct {
	conn     *conn
	qual     uint64
	private  []byte
	first    event // the event that brought it
	answered atomic.Bool
}

// Private implements [hw.Request]. The data is never truncated: the transport does not
// carry a request with more than fits.
func (r *request) Private() ([]byte, bool) { return r.private, false }

func (r *request) Local() net.Addr {
	local, _ := r.conn.addresses()
	return local
}

func (r *request) Remote() net.Addr {
	_, remote := r.conn.addresses()
	return remote
}

func (r *request) Qual() uint64 { return r.qual }

// answer claims the request for one answer; it fails at the second call, and when the device has closed. The caller
// calls answers.Done when it has answered.
func (r *request) answer(op string) error {
	d := r.conn.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || !r.answered.CompareAndSwap(false, true) {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleCR, "the request is answered")
	}
	d.answers.Add(1)
	return nil
}

// refuse rejects the request as the provider and destroys its conn.
func (r *request) refuse() {
	r.answered.Store(true)
	r.conn.with(rejectAsProvider)
	r.conn.destroy()
}

// rejectAsProvider rejects with the bytes that mark a provider's reject.
func rejectAsProvider(id *C.struct_gc_id) {
	data, n := bytesOf(reject.ByProvider())
	C.gd_cm_reject(id, data, n)
}

func (r *request) Reject(private []byte) error {
	const op = "ibv.Reject"
	if err := r.answer(op); err != nil {
		return err
	}
	d := r.conn.dev
	defer d.answers.Done()
	if len(private) > d.attr.MaxPrivate {
		r.refuse()
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "%d bytes of private data, at most %d", len(private), d.attr.MaxPrivate)
	}
	data, n := bytesOf(d.transport.pack(msgReject, private, r.conn.tailed, note{}))
	r.conn.with(func(id *C.struct_gc_id) { C.gd_cm_reject(id, data, n) })
	r.conn.destroy()
	return nil
}

func (r *request) Accept(qp hw.QP, private []byte) error {
	const op = "ibv.Accept"
	if err := r.answer(op); err != nil {
		return err
	}
	d := r.conn.dev
	defer d.answers.Done()
	q, err := d.ownQP(op, qp)
	switch {
	case err == nil && q == nil:
		err = hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is nil")
	case len(private) > d.attr.MaxPrivate:
		err = hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%d bytes of private data, at most %d", len(private), d.attr.MaxPrivate)
	}
	if err == nil {
		err = q.accept(op, r, private)
	}
	if err != nil {
		r.refuse()
	}
	return err
}

// accept binds a request to the queue pair. When a step after that fails, accept returns
// nil and the failure is told as Facts.Refused.
func (q *queuePair) accept(op string, r *request, private []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.at() != phaseNew {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is not new or reset")
	}
	c, d := r.conn, q.dev
	q.conn = c
	q.become(phaseConnecting)
	q.agree(r.first)
	var place note
	if c.tailed {
		place = c.takePlace(q.parts.zone)
	}
	data, n := bytesOf(d.transport.pack(msgAccept, private, c.tailed, place))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.qp, c.life = q, q.life
	var cause *hw.Cause
	if c.gone || c.id == nil {
		cause = &hw.Cause{Layer: hw.LayerVerbs, Text: "the peer gave up before it was accepted", Found: hw.SidePeer}
	} else if !d.transport.iwarp {
		cause = failed("ibv_modify_qp", C.gd_bring_up(q.c, c.id, &q.up, d.access))
	}
	if cause == nil {
		cause = failed("rdma_accept", C.gd_cm_accept(c.id, &q.up, q.rings.qp_num, q.parts.srq != nil, data, n))
	}
	if cause != nil {
		life := q.life
		d.watcher.later(func() { q.refused(life, hw.ReasonUnreachable, nil, c.between(cause)) })
	}
	return nil
}

// abandonRequests rejects, as the provider, the requests that the consumer has not
// answered, and destroys every conn that is left. Close calls it.
func (d *device) abandonRequests() {
	for _, c := range listed(d, d.conns) {
		c.with(func(id *C.struct_gc_id) {
			if c.passive {
				rejectAsProvider(id)
			}
		})
		c.destroy()
	}
}
