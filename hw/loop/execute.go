package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

func solicited(wr *hw.SendWR) hw.WCFlags {
	if wr.Flags&hw.WRSolicited != 0 {
		return hw.WCSolicited
	}
	return 0
}

// The fast path executes the most common requests: a short message of one segment, into
// a receive of one segment if it is a send, without an error. Its cost decides the
// throughput (see BenchmarkPair), so it does nothing else. The fast methods return false
// for any other request, and then have done nothing.

func (x *executor) fast(wr *hw.SendWR) bool {
	switch wr.Op {
	case hw.OpSend:
		return x.fastSend(wr)
	case hw.OpWrite, hw.OpRead:
		return x.fastRDMA(wr)
	}
	return false
}

func (x *executor) fastSend(wr *hw.SendWR) bool {
	i := x.dst.n
	if len(wr.SGL) != 1 || i >= len(x.dst.wcs) || !x.dst.available() {
		return false
	}
	rr := x.dst.next()
	if rr.n != 1 {
		return false
	}
	s, d := &wr.SGL[0], rr.sgl
	n := s.Len
	if n > d.Len || !x.fastAffords(n) {
		return false
	}
	from := x.src.Reach(s.Addr, n, s.LKey, hw.LocalRead)
	to := x.dst.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite)
	if from == nil || to == nil {
		return false
	}
	copyBytes(to, from, n)
	x.moved(wr, n)
	x.dst.wcs[i] = hw.WC{ID: rr.id, Len: n, Op: hw.OpRecv, Flags: solicited(wr)}
	x.dst.n = i + 1
	x.dst.head++
	return true
}

func (x *executor) fastRDMA(wr *hw.SendWR) bool {
	if len(wr.SGL) != 1 || !x.fastAffords(wr.SGL[0].Len) || !x.rdma(wr.Op, &wr.SGL[0], wr.RKey, wr.RemoteAddr) {
		return false
	}
	x.moved(wr, wr.SGL[0].Len)
	return true
}

// fastAffords reports whether the fast path may move n bytes. It may not move 0 bytes,
// whose address must not be checked: n-1 wraps.
func (x *executor) fastAffords(n uint32) bool {
	return n-1 < uint32(x.bytes) && int(x.src.n) < len(x.src.wcs)
}

// moved completes a request whose n bytes were copied.
func (x *executor) moved(wr *hw.SendWR, n uint32) {
	x.bytes -= int64(n)
	x.src.sent(wr, n)
}

// send moves a message into the first receive.
func (x *executor) send(wr *hw.SendWR) verdict {
	n := soft.Total(wr.SGL)
	switch {
	case n > soft.MaxMessage:
		return x.fail(wr, hw.StatusLocalLength)
	case !x.src.Allows(wr.SGL, hw.LocalRead):
		return x.fail(wr, hw.StatusLocalProtection)
	case !x.dst.ready():
		return noReceive
	}
	sink := x.dst.first()
	if n > soft.Total(sink) {
		return x.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalLength)
	}
	if !x.affords(n) {
		return tooLong
	}
	if wr.Op == hw.OpSendInvalidate {
		if v := x.invalidate(wr); v != done {
			return v
		}
	}
	switch x.transfer(&x.src.end, wr.SGL, hw.LocalRead, &x.dst.end, sink, hw.LocalWrite, n) {
	case moved:
		if wr.Op == hw.OpSendInvalidate {
			return x.sentInvalidate(wr, uint32(n))
		}
		x.dst.received(uint32(n), hw.OpRecv, solicited(wr), 0)
		return x.sent(wr, uint32(n))
	case badSource:
		return x.fail(wr, hw.StatusLocalProtection)
	case badSink:
		return x.failBoth(wr, hw.StatusRemoteResponder, hw.StatusLocalProtection)
	default:
		return cut
	}
}

// move executes a write or a read: it moves the local segments, whose keys must have the privilege
// local, to the target's memory, whose key must have the privilege remote; or the other way if that
// is to be read.
func (x *executor) move(wr *hw.SendWR, local, remote hw.Privileges) verdict {
	n := soft.Total(wr.SGL)
	reads := remote == hw.RemoteRead
	switch {
	case reads && x.canRead != hw.StatusSuccess:
		return x.fail(wr, x.canRead)
	case n > soft.MaxMessage:
		return x.fail(wr, hw.StatusLocalLength)
	case !x.src.Allows(wr.SGL, local):
		return x.fail(wr, hw.StatusLocalProtection)
	}
	there := [1]hw.SGE{{Addr: wr.RemoteAddr, Len: uint32(n), LKey: wr.RKey}}
	if !x.dst.Allows(there[:], remote) {
		return x.fail(wr, hw.StatusRemoteAccess)
	}
	if !x.affords(n) {
		return tooLong
	}
	var out outcome
	if reads {
		out = x.transfer(&x.dst.end, there[:], remote, &x.src.end, wr.SGL, local, n)
	} else {
		out = x.transfer(&x.src.end, wr.SGL, local, &x.dst.end, there[:], remote, n)
	}
	switch {
	case out == moved:
		return x.sent(wr, uint32(n))
	case out == broke:
		return cut
	case reads == (out == badSource):
		return x.fail(wr, hw.StatusRemoteAccess)
	}
	return x.fail(wr, hw.StatusLocalProtection)
}

// writeImm executes a write and then completes a receive with the immediate data. The
// receive's segments get no bytes. Without a receive the write waits as a whole.
func (x *executor) writeImm(wr *hw.SendWR) verdict {
	if !x.dst.ready() {
		return noReceive
	}
	v := x.move(wr, hw.LocalRead, hw.RemoteWrite)
	if v == done {
		x.dst.received(uint32(soft.Total(wr.SGL)), hw.OpRecvImm, hw.WCImm|solicited(wr), wr.Imm)
	}
	return v
}

// readToRMR executes a read whose sink is named by its remote key, as a peer names it.
func (x *executor) readToRMR(wr *hw.SendWR) verdict {
	at := x.src.n
	v := x.move(wr, hw.RemoteWrite, hw.RemoteRead)
	if v == done && x.src.n > at {
		x.src.wcs[at].Op = hw.OpRead
	}
	return v
}
