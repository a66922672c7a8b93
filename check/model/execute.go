package model

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// DTO completion statuses.
const (
	errFlushed         = 1
	errLocalLength     = 2
	errLocalEP         = 3
	errLocalProtection = 4
	errRemoteAccess    = 6
	errRemoteResponder = 7
	errNotReady        = 9
	errBindFailed      = 11

	errAny = errLocalEP // of a failure whose status DAT leaves open
)

// execute executes the requests of p until one must wait.
func (p *endpoint) execute() {
	for p.peer != nil && len(p.reqs) > 0 {
		if !p.executeOne(p.reqs[0]) {
			return
		}
	}
	if p.state == disconnectPending {
		p.endBoth(disconnected)
	}
}

// executeOne executes the first request. It returns false when the request must wait
// for a receive.
func (p *endpoint) executeOne(x *work) bool {
	takesRecv := x.kind == sends || x.op == "write_imm"
	n := x.bytes()
	switch lost := x.kind == sends && !p.w.intact(x.segs, n); {
	case lost || !takesRecv: // the device looks at a send before it takes a receive
	case !p.peer.receive():
		if p.waits {
			p.stalled = cmp.Or(p.stalled, p.w.step)
			return false
		}
		p.fail(errNotReady)
		return true
	}
	p.stalled = 0
	remote := x.target
	remote.Len = n
	switch {
	case (x.kind == reads || x.kind == atomics) && (p.readsOut == 0 || p.peer.readsIn == 0):
		p.fail(errAny)
	case !p.w.intact(x.segs, n), !p.sinkReachable(x):
		p.fail(errLocalProtection)
	case x.remote != 0 && !p.w.reachable(&remote, p.peer, x.remote):
		p.fail(errRemoteAccess)
	case x.kind == atomics && remote.Off%8 != 0: // in memory; every region begins at a multiple of 8
		p.fail(errRemoteResponder)
	case x.bind != nil && x.bind.binds() && !p.w.at(x.bind.seg).open:
		p.fail(errBindFailed)
	case x.kind == sends:
		p.send(x, n)
	default:
		p.transfer(x, remote, n)
	}
	return true
}

// bytes is how many bytes an operation transfers.
func (x *work) bytes() int {
	switch x.kind {
	case reads:
		return x.target.Len
	case atomics:
		return 8
	}
	return total(x.segs)
}

// sinkReachable reports whether the sink of a read, if a remote context names it, is
// one that p's peer may write. It makes that sink the local segment of the read.
func (p *endpoint) sinkReachable(x *work) bool {
	if x.op != "read_rmr" {
		return true
	}
	sink := x.sink
	sink.Len = x.target.Len
	ok := p.w.reachable(&sink, p, remoteWrite)
	if ok {
		x.segs = []Segment{sink}
	}
	return ok
}

// send sends n bytes to the first receive of the peer.
func (p *endpoint) send(x *work, n int) {
	peer := p.peer
	sink := peer.recvs[0].segs
	if n > total(sink) {
		p.failBoth(errLocalLength)
		return
	}
	if x.op == "send_inv" {
		context, ok := p.w.invalidate(peer, x.target)
		if x.imm = context; !ok {
			p.fail(errRemoteAccess)
			return
		}
	}
	if !p.w.intact(sink, n) || !p.w.inZone(sink, n, peer.zone) {
		p.failBoth(errLocalProtection)
		return
	}
	p.w.move(sink, x.segs, n)
	peer.received(0, n, x)
	p.requested(0, n)
}

// transfer executes an operation on n bytes of the peer's memory, or a bind.
func (p *endpoint) transfer(x *work, remote Segment, n int) {
	switch x.kind {
	case writes:
		p.w.move([]Segment{remote}, x.segs, n)
		if x.op == "write_imm" {
			p.peer.received(0, n, x)
		}
	case reads:
		p.w.move(x.segs, []Segment{remote}, n)
	case atomics:
		p.w.atomic(x, remote)
	case binds:
		x.bind.execute()
	}
	p.requested(0, n)
}

// atomic executes an atomic operation on 8 remote bytes, and writes the old ones to
// the local segments.
func (m *memory) atomic(x *work, remote Segment) {
	target, sink := []Segment{remote}, head(x.segs, 8)
	old := m.bytes(target)
	value := binary.NativeEndian.Uint64(old.bytes)
	switch {
	case x.op == "fetch_add":
		value += x.add
	case value == x.cmp:
		value = x.add
	}
	vague := slices.Contains(old.unknown, true)
	mixed := vague || m.overlap(remote, sink...)
	m.put(target, mixed, content{binary.NativeEndian.AppendUint64(nil, value), make([]bool, 8)})
	m.put(sink, mixed, old)
}

// fail ends the first request with an error, which breaks the connection.
func (p *endpoint) fail(status int) {
	p.forget(p.reqs[0])
	p.requested(status, 0)
	p.endBoth(broken)
}

// failBoth fails a send and the receive that it took.
func (p *endpoint) failBoth(atReceiver int) {
	p.w.forget(p.peer.recvs[0].segs)
	p.peer.received(atReceiver, 0, nil)
	p.fail(errRemoteResponder)
}

// forget marks the memory as unknown that x may have begun to fill.
func (p *endpoint) forget(x *work) {
	if x.kind == reads || x.kind == atomics {
		p.w.forget(x.segs)
	}
	if x.remote&(remoteWrite|remoteAtomic) == 0 {
		return
	}
	real, ok := x.target, true
	if real.Window {
		real, ok = p.w.bind(real).resolve(real, remotePrivilege)
	}
	if ok {
		p.w.forget([]Segment{real})
	}
}
