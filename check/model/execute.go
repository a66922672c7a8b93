package model

import "encoding/binary"

// DTO completion statuses.
const (
	errFlushed         = 1
	errLocalLength     = 2
	errLocalEP         = 3
	errLocalProtection = 4
	errRemoteAccess    = 6
	errRemoteResponder = 7
	errNotReady        = 9
)

// pump executes the requests of p until one must wait.
func (w *World) pump(p *endpoint) {
	for p.peer != nil && len(p.reqs) > 0 {
		if !w.execute(p, p.reqs[0]) {
			return
		}
	}
	if p.state == disconnectPending {
		peer := p.peer
		w.end(p, disconnected)
		w.end(peer, disconnected)
	}
}

// execute executes the first request. It returns false when the request must wait
// for a receive.
func (w *World) execute(p *endpoint, x *work) bool {
	sends := x.op == "send" || x.op == "send_inv"
	takesRecv := sends || x.op == "write_imm"
	if sends && !w.alive(x.segs, total(x.segs)) {
		p.stalled = 0
		w.fail(p, errLocalProtection)
		return true
	}
	if takesRecv {
		w.draw(p.peer)
	}
	if takesRecv && len(p.peer.recvs) == 0 {
		if p.waits {
			if p.stalled == 0 {
				p.stalled = w.step
			}
			return false
		}
		w.fail(p, errNotReady)
		return true
	}
	p.stalled = 0
	switch x.op {
	case "send", "send_inv":
		w.send(p, x)
	case "read_rmr":
		w.readToRMR(p, x)
	case "write", "write_imm":
		w.write(p, x)
	case "read":
		w.read(p, x)
	case "bind":
		w.bound(p, x)
	default:
		w.atomic(p, x)
	}
	return true
}

func (w *World) send(p *endpoint, x *work) {
	n, sink := total(x.segs), p.peer.recvs[0].segs
	if n > total(sink) {
		w.failBoth(p, errLocalLength)
		return
	}
	if x.op == "send_inv" {
		ok := false
		if x.imm, ok = w.invalidate(p.peer, x.remote); !ok {
			w.fail(p, errRemoteAccess)
			return
		}
	}
	switch {
	case !w.alive(sink, n) || !w.inZone(sink, n, p.peer.zone):
		w.failBoth(p, errLocalProtection)
	default:
		w.move(sink, x.segs, n)
		w.received(p.peer, 0, n, x)
		w.requested(p, 0, n, false)
	}
}

func (w *World) write(p *endpoint, x *work) {
	n, target := total(x.segs), x.remote
	target.Len = n
	switch {
	case !w.alive(x.segs, n):
		w.fail(p, errLocalProtection)
	case !w.reachable(&target, p.peer, remoteWrite):
		w.fail(p, errRemoteAccess)
	default:
		w.move([]Segment{target}, x.segs, n)
		if x.op == "write_imm" {
			w.received(p.peer, 0, n, x)
		}
		w.requested(p, 0, n, false)
	}
}

func (w *World) read(p *endpoint, x *work) {
	n, source := x.remote.Len, x.remote
	switch {
	case p.readsOut == 0 || p.peer.readsIn == 0:
		w.failSomehow(p)
	case !w.alive(x.segs, n):
		w.fail(p, errLocalProtection)
	case !w.reachable(&source, p.peer, remoteRead):
		w.fail(p, errRemoteAccess)
	default:
		w.move(x.segs, []Segment{source}, n)
		w.requested(p, 0, n, false)
	}
}

func (w *World) atomic(p *endpoint, x *work) {
	remote := x.remote
	switch {
	case p.readsOut == 0 || p.peer.readsIn == 0:
		w.failSomehow(p)
		return
	case !w.alive(x.segs, 8):
		w.fail(p, errLocalProtection)
		return
	case !w.reachable(&remote, p.peer, remoteAtomic):
		w.fail(p, errRemoteAccess)
		return
	case remote.Off%8 != 0: // in memory; every region begins at a multiple of 8
		w.fail(p, errRemoteResponder)
		return
	}
	target, sink := w.places([]Segment{remote}), w.places(head(x.segs, 8))
	var cell [8]byte
	vague := false
	for i, t := range target {
		cell[i] = t.m.bytes[t.i]
		vague = vague || t.m.vague[t.i]
	}
	old := binary.NativeEndian.Uint64(cell[:])
	value := old + x.add
	if x.op == "cmp_swap" {
		value = old
		if old == x.cmp {
			value = x.add
		}
	}
	before := cell
	binary.NativeEndian.PutUint64(cell[:], value)
	for i, t := range target {
		t.m.bytes[t.i], t.m.vague[t.i] = cell[i], vague
	}
	mixed := vague
	for _, s := range x.segs {
		mixed = mixed || w.overlap(s, remote)
	}
	for i, t := range sink {
		t.m.bytes[t.i], t.m.vague[t.i] = before[i], mixed
	}
	if mixed {
		w.blur([]Segment{remote})
		w.blur(x.segs)
	}
	w.requested(p, 0, 8, false)
}

// fail ends the first request with an error, which breaks the connection.
func (w *World) fail(p *endpoint, status int) {
	w.blurWork(p.reqs[0])
	w.requested(p, status, 0, false)
	w.breakUp(p)
}

// failSomehow is fail with a status that DAT leaves open.
func (w *World) failSomehow(p *endpoint) {
	w.blurWork(p.reqs[0])
	w.requested(p, errLocalEP, 0, true)
	w.breakUp(p)
}

// failBoth fails a send and the receive that it took.
func (w *World) failBoth(p *endpoint, atReceiver int) {
	w.blur(p.peer.recvs[0].segs)
	w.received(p.peer, atReceiver, 0, nil)
	w.fail(p, errRemoteResponder)
}

// blurWork marks as unknown the memory that x may have begun to fill.
func (w *World) blurWork(x *work) {
	switch x.op {
	case "read", "fetch_add", "cmp_swap":
		w.blur(x.segs)
	}
	if operations[x.op].remote&(remoteWrite|remoteAtomic) != 0 {
		if real, ok := w.through(x.remote, remotePrivilege); x.remote.Window && ok {
			w.blur([]Segment{real})
		} else if !x.remote.Window {
			w.blur([]Segment{x.remote})
		}
	}
}

// breakUp ends a connection with BROKEN.
func (w *World) breakUp(p *endpoint) {
	peer := p.peer
	w.end(p, broken)
	if peer != nil {
		w.end(peer, broken)
	}
}
