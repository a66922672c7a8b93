package model

import (
	"cmp"
	"encoding/binary"
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
		x := p.reqs[0]
		t := transfer{&p.w.memory, p, p.peer, x, x.target, x.bytes()}
		if t.remote.Len = t.n; !t.start() {
			return
		}
	}
	if p.state == disconnectPending {
		p.endBoth(disconnected)
	}
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

// transfer is the execution of p's first request.
type transfer struct {
	*memory
	p, peer *endpoint
	x       *work
	remote  Segment // of n bytes
	n       int
}

// start executes the request. It returns false when the request must wait for a
// receive.
func (t *transfer) start() bool {
	p, x := t.p, t.x
	sent := x.kind == sends && t.intact(x.segs, t.n) // the device looks at a send before it takes a receive
	if (sent || x.op == "write_imm") && !t.peer.receive() {
		if p.waits {
			p.stalled = cmp.Or(p.stalled, p.w.step)
			return false
		}
		t.fail(errNotReady)
		return true
	}
	p.stalled = 0
	switch {
	case (x.kind == reads || x.kind == atomics) && (p.readsOut == 0 || t.peer.readsIn == 0):
		t.fail(errAny)
	case !t.intact(x.segs, t.n), !t.sinkReachable():
		t.fail(errLocalProtection)
	case x.remote != 0 && !t.reachable(&t.remote, t.peer, x.remote):
		t.fail(errRemoteAccess)
	case x.kind == atomics && t.remote.Off%8 != 0: // in memory; every region begins at a multiple of 8
		t.fail(errRemoteResponder)
	case x.bind != nil && x.bind.binds() && !t.at(x.bind.seg).open:
		t.fail(errBindFailed)
	case x.kind == sends:
		t.send()
	default:
		t.access()
	}
	return true
}

// sinkReachable reports whether the sink of a read, if a remote context names it, is
// one that p's peer may write. It makes that sink the local segment of the read.
func (t *transfer) sinkReachable() bool {
	if t.x.op != "read_rmr" {
		return true
	}
	sink := t.x.sink
	sink.Len = t.n
	if !t.reachable(&sink, t.p, remoteWrite) {
		return false
	}
	t.x.segs = []Segment{sink}
	return true
}

// send sends to the first receive of the peer.
func (t *transfer) send() {
	sink := t.peer.recvs[0].segs
	if t.n > total(sink) {
		t.failBoth(errLocalLength)
		return
	}
	if t.x.op == "send_inv" {
		context, ok := t.invalidate(t.peer, t.x.target)
		if t.x.imm = context; !ok {
			t.fail(errRemoteAccess)
			return
		}
	}
	if !t.intact(sink, t.n) || !t.inZone(sink, t.n, t.peer.zone) {
		t.failBoth(errLocalProtection)
		return
	}
	t.move(sink, t.x.segs, t.n)
	t.peer.received(0, t.n, t.x)
	t.p.requested(0, t.n)
}

// access executes an operation on the peer's memory, or a bind.
func (t *transfer) access() {
	switch target := []Segment{t.remote}; t.x.kind {
	case writes:
		t.move(target, t.x.segs, t.n)
		if t.x.op == "write_imm" {
			t.peer.received(0, t.n, t.x)
		}
	case reads:
		t.move(t.x.segs, target, t.n)
	case atomics:
		t.atomic(target, head(t.x.segs, t.n))
	case binds:
		t.x.bind.execute()
	}
	t.p.requested(0, t.n)
}

// atomic executes an atomic operation on the target, and writes its old bytes to the
// sink.
func (t *transfer) atomic(target, sink []Segment) {
	old := t.load(target)
	var word [8]byte
	mixed := t.overlap(t.remote, sink...)
	for i, c := range old {
		word[i] = c.byte
		mixed = mixed || c.unknown
	}
	value := binary.NativeEndian.Uint64(word[:])
	switch {
	case t.x.op == "fetch_add":
		value += t.x.add
	case value == t.x.cmp:
		value = t.x.add
	}
	binary.NativeEndian.PutUint64(word[:], value)
	next := make([]cell, len(word))
	for i, b := range word {
		next[i].byte = b
	}
	t.store(target, mixed, next)
	t.store(sink, mixed, old)
}

// fail ends the request with an error, which breaks the connection.
func (t *transfer) fail(status int) {
	if t.x.kind == reads || t.x.kind == atomics {
		t.forget(t.x.segs)
	}
	if t.x.remote&(remoteWrite|remoteAtomic) != 0 {
		real := t.x.target
		if piece, ok := t.bind(real).resolve(real, remotePrivilege); real.Window && ok {
			real = piece
		}
		t.forget([]Segment{real})
	}
	t.p.requested(status, 0)
	t.p.endBoth(broken)
}

// failBoth fails a send and the receive that it took.
func (t *transfer) failBoth(atReceiver int) {
	t.forget(t.peer.recvs[0].segs)
	t.peer.received(atReceiver, 0, nil)
	t.fail(errRemoteResponder)
}
