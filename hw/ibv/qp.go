//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"syscall"

	"godat/hw"
)

// phase is the state of a queue pair's connection.
type phase uint32

const (
	phaseNew        phase = iota
	phaseConnecting       // Connect or Accept was called
	phaseUp               // Facts.Established was called, or is about to be
	phaseDown             // Facts.Refused or Facts.Down was called, or is about to be
	phaseBroken           // Break was called
)

// queuePair implements [hw.QP].
type queuePair struct {
	// Immutable after NewQP.
	dev      *device
	key      uint64
	cfg      hw.QPConfig
	parts    parts
	ccfg     C.struct_gd_qp_config
	sendable hw.OpSet

	// Written by Reset and Close, which the owner calls.
	c     *C.struct_gd_qp
	rings C.struct_gd_rings

	up C.struct_gd_up // guarded by mu

	// Used by the owner's calls alone: the positions of the next requests.
	sendPos, recvPos uint32

	phase atomic.Uint32 // written under mu

	// Guarded by mu, which no goroutine holds while it calls a method of Facts.
	mu      sync.Mutex
	life    uint64 // counts connections: Reset begins the next
	conn    *conn
	own     *ownPath // of this life; nil: nobody asked for the values
	nudged  int      // how many of its alarms for nudges this life has had
	unread  int      // octets in the socket at the last of them; see nudge.go
	leaving bool     // an orderly Break waits for its farewell
	telling bool     // a goroutine is in tell's loop
	untold  []fact   // facts that this goroutine still has to tell
	closed  bool
}

// NewQP implements [hw.Device].
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	const op = "ibv.NewQP"
	if err := d.checkQP(op, &cfg); err != nil {
		return nil, err
	}
	if err := d.adopt(op); err != nil {
		return nil, err
	}
	q := &queuePair{dev: d, cfg: cfg, life: 1}
	if err := q.parts.use(op, d, &cfg); err != nil {
		d.disown()
		return nil, err
	}
	q.key = enlist(d, d.qps, q)
	q.configure()
	c, errno := C.gd_new_qp(d.c, &q.ccfg)
	if c == nil {
		q.release()
		return nil, resourceError(op, hw.ResourceTEP, errno)
	}
	q.c = c
	q.rings = C.gd_rings_of(c)
	return q, nil
}

func (d *device) checkQP(op string, cfg *hw.QPConfig) error {
	a := &d.attr
	switch {
	case cfg.Facts == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "Facts is nil")
	case cfg.SendDepth < 0 || cfg.SendDepth > a.MaxDepth || cfg.RecvDepth < 0 || cfg.RecvDepth > a.MaxDepth:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depths %d and %d, at most %d", cfg.SendDepth, cfg.RecvDepth, a.MaxDepth)
	case cfg.SendSegments < 0 || cfg.SendSegments > a.MaxSendSegments || cfg.RecvSegments < 0 || cfg.RecvSegments > a.MaxRecvSegments:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d and %d segments, at most %d and %d",
			cfg.SendSegments, cfg.RecvSegments, a.MaxSendSegments, a.MaxRecvSegments)
	case cfg.ReadsIn < 0 || cfg.ReadsIn > a.MaxReadsIn || cfg.ReadsOut < 0 || cfg.ReadsOut > a.MaxReadsOut:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d reads in and %d out, at most %d and %d",
			cfg.ReadsIn, cfg.ReadsOut, a.MaxReadsIn, a.MaxReadsOut)
	}
	return nil
}

// configure writes the C half's configuration.
func (q *queuePair) configure() {
	d, cfg := q.dev, &q.cfg
	q.sendable = d.attr.Ops
	q.ccfg = C.struct_gd_qp_config{
		pd: q.parts.zone.pd, send_cq: q.parts.send.c, recv_cq: q.parts.recv.c,
		handle: C.uint64_t(q.key), send_end: C.uint64_t(cfg.SendEnd), recv_end: C.uint64_t(cfg.RecvEnd),
		number: C.uint32_t(cfg.Number), send_depth: C.uint32_t(cfg.SendDepth), recv_depth: C.uint32_t(cfg.RecvDepth),
		send_segs: C.uint32_t(cfg.SendSegments), recv_segs: C.uint32_t(cfg.RecvSegments),
		inline_max: C.uint32_t(d.params.inline), port: C.uint8_t(d.params.port), iwarp: C.bool(d.transport.iwarp), access: d.access,
	}
	if q.parts.srq != nil {
		q.ccfg.srq = q.parts.srq.c
	}
	retries, code := rnr(cfg.NotReady)
	if d.params.rnrTimer >= 0 {
		code = d.params.rnrTimer
	}
	if d.params.rnrRetries >= 0 {
		retries = d.params.rnrRetries
	}
	q.up = C.struct_gd_up{
		reads_in: C.uint8_t(cfg.ReadsIn), reads_out: C.uint8_t(cfg.ReadsOut), least_out: C.uint8_t(min(1, d.attr.MaxReadsOut)),
		min_rnr: C.uint8_t(code), rnr_retry: C.uint8_t(retries), timeout: C.uint8_t(d.params.ackTimeout), retry: C.uint8_t(d.params.retries),
	}
}

// at is the queue pair's phase. Without mu held, the phase may have changed when at
// returns.
func (q *queuePair) at() phase { return phase(q.phase.Load()) }

// become changes the phase, with mu held.
func (q *queuePair) become(p phase) { q.phase.Store(uint32(p)) }

// lockAt takes mu if the queue pair is in that life and that phase, and reports whether it is.
func (q *queuePair) lockAt(life uint64, p phase) bool {
	q.mu.Lock()
	if q.life == life && q.at() == p {
		return true
	}
	q.mu.Unlock()
	return false
}

// Reset implements [hw.QP].
func (q *queuePair) Reset() error {
	const op = "ibv.QP.Reset"
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.finished(op); err != nil {
		return err
	}
	var old *C.struct_gv_qp
	if errno := C.gd_renew_qp(q.c, &q.ccfg, &old); errno != 0 {
		return resourceError(op, hw.ResourceTEP, syscall.Errno(errno))
	}
	q.rings = C.gd_rings_of(q.c)
	q.sendPos, q.recvPos = 0, 0
	q.life++
	q.nudged, q.unread = 0, 0
	q.leaving = false
	q.become(phaseNew)
	q.part(old)
	return nil
}

// part ends what connected the queue pair in the life of old, the device's queue pair, with mu held.
func (q *queuePair) part(old *C.struct_gv_qp) {
	c, own := q.conn, q.own
	q.conn, q.own = nil, nil
	if c == nil || !c.inherit(old, q) {
		C.gd_destroy_hw(old)
	}
	if own != nil {
		own.place.release()
	}
}

// finished returns an error unless both queues of a broken queue pair have ended, with
// mu held.
func (q *queuePair) finished(op string) error {
	switch {
	case q.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
	case q.at() != phaseBroken || !bool(C.gd_look(q.c).ended):
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queues have not ended: call Break, and poll until both OpEnds have come")
	}
	return nil
}

// Close implements [hw.QP]. When the kernel is still busy with an attempt to connect,
// the device's queue pair goes on using the zone and the completion queues until the
// attempt ends. They may be closed before, and are freed then.
func (q *queuePair) Close() error {
	const op = "ibv.QP.Close"
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at() != phaseNew || q.closed {
		if err := q.finished(op); err != nil {
			return err
		}
	}
	q.closed = true
	old := C.gd_free_qp(q.c, 1)
	q.c = nil
	q.part(old)
	q.release()
	return nil
}

// release gives back what the queue pair is made of.
func (q *queuePair) release() {
	unlist(q.dev, q.dev.qps, q.key)
	q.parts.each((*users).unuse)
	q.dev.disown()
}
