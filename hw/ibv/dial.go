//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"godat/hw"
)

// resolveTime bounds each of address and route resolution.
const resolveTime = 2 * time.Second

// Connect implements [hw.QP]. It checks its arguments and starts a goroutine for the
// attempt: a look-up of the host's name takes time, and some drivers block until the
// peer's transport has answered. The owner enforces ConnectConfig.Timeout.
func (q *queuePair) Connect(cfg hw.ConnectConfig) error {
	const op = "ibv.Connect"
	d := q.dev
	switch {
	case cfg.Qual == 0 || cfg.Qual > hw.MaxQual:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "connection qualifier %d is no port; the last is %d", cfg.Qual, hw.MaxQual)
	case len(cfg.Private) > d.attr.MaxPrivate:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "%d bytes of private data, at most %d", len(cfg.Private), d.attr.MaxPrivate)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.at() != phaseNew {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is not new or reset")
	}
	c := d.newConn(nil)
	c.qp, c.life, c.dialing = q, q.life, true
	q.conn = c
	q.up.reads_in, q.up.reads_out = C.uint8_t(q.cfg.ReadsIn), C.uint8_t(q.cfg.ReadsOut)
	q.become(phaseConnecting)
	C.gd_hold(q.c, true) // no poll hands on a completion before Established was told
	a := &attempt{
		conn: c, qp: q, life: q.life, up: q.up, host: cfg.Addr, port: uint16(cfg.Qual),
		qpNum: q.rings.qp_num, private: d.transport.pack(msgRequest, cfg.Private, true, c.takePlace(q.parts.zone)),
	}
	d.dials.Add(1)
	go a.run()
	return nil
}

// attempt is an attempt to connect; its goroutine is run.
type attempt struct {
	conn    *conn
	qp      *queuePair
	life    uint64
	up      C.struct_gd_up
	host    string
	port    uint16
	qpNum   C.uint32_t
	private []byte
}

// failure is why an attempt to connect failed.
type failure struct {
	why     hw.Reason
	private []byte
	cause   *hw.Cause
}

func (a *attempt) run() {
	defer a.conn.dev.dials.Done()
	if f := a.dial(); f != nil {
		a.qp.refused(a.life, f.why, f.private, a.conn.between(f.cause))
	}
	a.leave()
}

// leave hands the connection over to the watcher. When the attempt was given up, leave
// destroys the connection instead, which blocks as long as the kernel is busy with it,
// and then the device's queue pair that it inherited.
func (a *attempt) leave() {
	c := a.conn
	c.mu.Lock()
	for c.ctx.Err() == nil {
		select {
		case e := <-c.events:
			c.mu.Unlock()
			c.handle(e)
			c.mu.Lock()
			continue
		default:
		}
		c.dialing = false
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.destroy()
	c.mu.Lock()
	c.dialing = false
	orphan, used := c.orphan, c.used
	c.mu.Unlock()
	if orphan != nil {
		C.gd_destroy_hw(orphan)
		used.each((*users).depart)
	}
}

func unreachable(cause *hw.Cause) *failure {
	return &failure{why: hw.ReasonUnreachable, cause: cause}
}

// dial goes through the steps of connecting. It returns nil when the connection is up,
// or when the attempt was given up.
func (a *attempt) dial() *failure {
	dst, err := a.lookup()
	if err != nil {
		return unreachable(&hw.Cause{Layer: hw.LayerTCP, Text: err.Error(), Err: err})
	}
	data, n := bytesOf(a.private)
	for try := 0; ; try++ {
		id, f := a.resolve(dst)
		if f != nil {
			return f
		}
		errno := syscall.Errno(C.gd_cm_connect(id, &a.up, a.qpNum, a.qp.parts.srq != nil, data, n))
		switch {
		case errno == 0:
			return a.outcome(id)
		case errno != syscall.EADDRINUSE || try == portTries:
			return refusal(errno)
		}
		// An iWARP device binds a TCP socket to the source port, which the connection
		// manager has chosen without asking TCP whether it is free.
		a.conn.dropID()
	}
}

// resolve makes the connection's identifier and resolves the peer's address and the
// route there.
func (a *attempt) resolve(dst netip.Addr) (*C.struct_gc_id, *failure) {
	c := a.conn
	var id *C.struct_gc_id
	if cause := failed("rdma_create_id", C.gd_cm_new(c.dev.c, C.uint64_t(c.key), &id)); cause != nil {
		return nil, unreachable(cause)
	}
	c.mu.Lock()
	c.id = id
	c.mu.Unlock()
	if class := c.dev.params.trafficClass; class != 0 {
		if cause := failed("rdma_set_option", C.gd_cm_class(id, C.uint8_t(class))); cause != nil {
			return nil, unreachable(cause)
		}
	}
	src, to := sockaddr(c.dev.source(dst)), sockaddr(netip.AddrPortFrom(dst, a.port))
	ms := C.int(resolveTime / time.Millisecond)
	if cause := a.step("rdma_resolve_addr", C.gd_cm_resolve(id, &src, &to, ms), C.GC_EVENT_ADDR_RESOLVED); cause != nil {
		return nil, unreachable(cause)
	}
	if name := C.GoString(C.gd_cm_device(id)); name != c.dev.name {
		return nil, unreachable(localCause("the route to the peer leads through the device "+name+", not "+c.dev.name, syscall.ENETUNREACH))
	}
	if cause := a.step("rdma_resolve_route", C.gd_cm_route(id, ms), C.GC_EVENT_ROUTE_RESOLVED); cause != nil {
		return nil, unreachable(cause)
	}
	return id, nil
}

// refusal translates the error of rdma_connect on a transport where that call blocks
// until the connection is made.
func refusal(errno syscall.Errno) *failure {
	f := &failure{cause: failed("rdma_connect", C.int(errno))}
	switch errno {
	case syscall.ECONNREFUSED, syscall.ECONNRESET:
		f.why = hw.ReasonRejected
	case syscall.ETIMEDOUT:
		f.why = hw.ReasonTimeout
	default:
		f.why = hw.ReasonUnreachable
	}
	return f
}

// lookup resolves the host's name, and prefers an address of a family that the device
// has an address of.
func (a *attempt) lookup() (netip.Addr, error) {
	if ip, err := netip.ParseAddr(a.host); err == nil {
		return ip.Unmap(), nil
	}
	found, err := net.DefaultResolver.LookupNetIP(a.conn.ctx, "ip", a.host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, ip := range found {
		if a.conn.dev.source(ip.Unmap()).IsValid() {
			return ip.Unmap(), nil
		}
	}
	return found[0].Unmap(), nil
}

// source is the device's address to connect from: its first of dst's family, or the
// zero AddrPort.
func (d *device) source(dst netip.Addr) netip.AddrPort {
	for _, a := range d.addresses {
		if a.Is4() == dst.Is4() {
			return netip.AddrPortFrom(a, 0)
		}
	}
	return netip.AddrPort{}
}

// next waits for the attempt's next event; it returns false when the attempt was given
// up.
func (a *attempt) next() (event, bool) {
	if a.conn.ctx.Err() != nil {
		return event{}, false
	}
	select {
	case e := <-a.conn.events:
		return e, true
	case <-a.conn.ctx.Done():
		return event{}, false
	}
}

// step waits for the event that ends a step of the resolution, which a call has begun.
// It returns why the step failed, or nil. When the attempt was given up the cause is
// never told, and any will do.
func (a *attempt) step(call string, errno, want C.int) *hw.Cause {
	if cause := failed(call, errno); cause != nil {
		return cause
	}
	e, ok := a.next()
	switch {
	case !ok:
		return localCause("the attempt was given up", syscall.ECANCELED)
	case e.kind != want:
		return eventCause(e)
	}
	return nil
}

// outcome waits for the peer's answer.
func (a *attempt) outcome(id *C.struct_gc_id) *failure {
	e, ok := a.next()
	if !ok {
		return nil
	}
	switch e.kind {
	case C.GC_EVENT_CONNECT_RESPONSE:
		return a.respond(id, e)
	case C.GC_EVENT_ESTABLISHED: // iWARP: the kernel has brought the queue pair into service
		a.agree(e, nil)
		a.established(e)
		return nil
	case C.GC_EVENT_REJECTED:
		data, byConsumer := a.conn.dev.transport.unpackReject(e.status, e.private)
		if byConsumer {
			return &failure{hw.ReasonPeerRejected, data, eventCause(e)}
		}
		return &failure{why: hw.ReasonRejected, cause: eventCause(e)}
	}
	return unreachable(eventCause(e))
}

// respond brings the queue pair into service, tells Established and confirms the
// connection to the peer.
func (a *attempt) respond(id *C.struct_gc_id, e event) *failure {
	if !a.agree(e, id) {
		C.gd_cm_reject(id, nil, 0)
		return unreachable(localCause("the queue pair could not be brought into service", errDevice))
	}
	// established precedes rdma_establish: the peer may send as soon as it knows.
	if a.established(e) {
		if cause := failed("rdma_establish", C.gd_cm_establish(id)); cause != nil {
			a.qp.lost(a.life, hw.ReasonBroken, cause)
		}
	}
	return nil
}

// agree adopts the numbers of outstanding reads that the peer agreed to. With an
// identifier it also brings the queue pair into service.
func (a *attempt) agree(e event, id *C.struct_gc_id) bool {
	q := a.qp
	if !q.lockAt(a.life, phaseConnecting) {
		return false
	}
	defer q.mu.Unlock()
	q.agree(e)
	return id == nil || C.gd_bring_up(q.c, id, &q.up, a.conn.dev.access) == 0
}

// established tells that the connection is up, with the peer's private data. It reports
// whether the queue pair still was connecting.
func (a *attempt) established(e event) bool {
	c := a.conn
	data, peer, tailed := c.dev.transport.unpack(msgAccept, e.private)
	c.mu.Lock()
	c.farewells.peer, c.tailed = peer, tailed
	c.mu.Unlock()
	info := c.info()
	info.Private = data
	return a.qp.established(a.life, info)
}
