package hwtest

import (
	"fmt"
	"slices"

	"godat/hw"
)

var memoryCases = []contractCase{
	{"a region has a remote key when a remote privilege was asked for", func(r *rig) {
		seen := map[uint32]bool{}
		for _, priv := range eachPrivileges() {
			g := r.a.mem(64, priv)
			remote := priv&(hw.RemoteRead|hw.RemoteWrite) != 0
			r.also.Equal(remote, g.mr.RKey() != 0, "%v", priv)
			r.also.False(seen[g.mr.LKey()], "two regions have the local key %#x", g.mr.LKey())
			seen[g.mr.LKey()] = true
		}
	}},
	{"each operation needs its privilege on the local side", localPrivileges},
	{"each operation needs its privilege on the remote side", remotePrivileges},
	{"local segments stay within their region", func(r *rig) { forEachBound(r, localBound) }},
	{"remote ranges stay within their region", func(r *rig) { forEachBound(r, remoteBound) }},
	{"local segments are of the queue pair's zone", func(r *rig) {
		forEachLocal(r, func(h *host) (*region, hw.SGE) {
			zone, err := h.dev.NewZone()
			r.must.NoError(err)
			g := h.memIn(zone, make([]byte, 64), hw.AllPrivileges)
			h.zones = append(h.zones, zone)
			return g, g.all()
		})
	}},
	{"remote ranges are of the peer's zone", func(r *rig) {
		zone, err := r.b.dev.NewZone()
		r.must.NoError(err)
		r.b.zones = append(r.b.zones, zone)
		g := r.b.memIn(zone, make([]byte, 64), hw.AllPrivileges)
		forEachRemote(r, g, g.mr.RKey())
	}},
	{"the key of a region that is gone is good for nothing locally", func(r *rig) {
		forEachLocal(r, func(h *host) (*region, hw.SGE) {
			g := h.mem(64, hw.AllPrivileges)
			s := g.all()
			r.must.NoError(g.free())
			h.mem(64, hw.AllPrivileges) // may reuse the key's index
			return g, s
		})
	}},
	{"the key of a region that is gone is good for nothing remotely", func(r *rig) {
		g := r.b.mem(64, hw.AllPrivileges)
		key := g.mr.RKey()
		r.must.NoError(g.free())
		again := r.b.memIn(r.b.zone, g.buf, hw.AllPrivileges)
		r.also.NotEqual(key, again.mr.RKey(), "a key is not given again at once")
		forEachRemote(r, g, key)
	}},
	{"a made-up key is good for nothing", func(r *rig) {
		g := r.b.mem(64, hw.AllPrivileges)
		for _, key := range []uint32{0, 1, ^uint32(0), g.mr.RKey() ^ 1, g.mr.RKey() ^ 1<<20} {
			if key != g.mr.LKey() { // some devices have one key for local and remote use
				forEachRemote(r, g, key)
			}
		}
	}},
	{"two registrations of the same memory are independent", func(r *rig) {
		if !r.has(hw.OpWrite) {
			return
		}
		a, b := r.pair()
		buf := make([]byte, 64)
		one, two := r.b.memIn(r.b.zone, buf, hw.AllPrivileges), r.b.memIn(r.b.zone, buf, hw.AllPrivileges)
		src := r.a.mem(64, hw.LocalRead)
		fill(src.buf, 7)
		r.must.NoError(one.free())
		r.also.Equal(hw.StatusSuccess, a.sent(a.post(writeTo(two, 0, src.all()))).Status)
		roundTrip(r, a, b)
		r.also.Equal(src.buf, buf)
	}},
}

// localOp is an operation whose local segments the device checks, and the privilege that
// they need. The segment is a's, except that of a receive, which is b's.
type localOp struct {
	op   hw.Op
	need hw.Privileges
}

var localOps = []localOp{
	{hw.OpSend, hw.LocalRead},
	{hw.OpRecv, hw.LocalWrite},
	{hw.OpWrite, hw.LocalRead},
	{hw.OpRead, hw.LocalWrite},
}

// owner is the host that owns the segment of local.
func (r *rig) owner(op hw.Op) *host {
	if op == hw.OpRecv {
		return r.b
	}
	return r.a
}

// grants are the privileges with those that the provider's gaps imply.
func (r *rig) grants(priv hw.Privileges) hw.Privileges {
	if r.cfg.Gaps&ImpliedLocalRead != 0 {
		priv |= hw.LocalRead
	}
	if r.cfg.Gaps&ImpliedLocalWrite != 0 && priv&hw.RemoteWrite != 0 {
		priv |= hw.LocalWrite
	}
	return priv
}

// eachPrivileges lists every set of privileges without atomics.
func eachPrivileges() (all []hw.Privileges) {
	for p := range hw.AllPrivileges + 1 {
		if p&^hw.AllPrivileges == 0 {
			all = append(all, p)
		}
	}
	return all
}

// local runs op with one local segment on a new connection, and returns its status on the
// side that owns the segment. When op fails, local checks that the connection broke on
// both sides and that no data arrived in far.
func (r *rig) local(op hw.Op, s hw.SGE) (status hw.Status) {
	r.tb.Helper()
	a, b := r.pair()
	good, far := r.a.mem(localRoom, hw.AllPrivileges), r.b.mem(localRoom, hw.AllPrivileges)
	fill(far.buf, 3)
	sink := far.all()
	if op == hw.OpRecv {
		sink = s
	}
	in := b.recv(sink)
	switch op {
	case hw.OpRecv:
		out := a.post(sendOf(good.sge(0, int(s.Len))))
		if status = b.received(in).Status; status != hw.StatusSuccess {
			r.also.Contains(r.atTarget(hw.StatusRemoteResponder), a.sent(out).Status)
		}
	case hw.OpSend:
		status = a.sent(a.post(sendOf(s))).Status
	case hw.OpWrite:
		status = a.sent(a.post(writeTo(far, 0, s))).Status
	case hw.OpRead:
		status = a.sent(a.post(readFrom(far, 0, s))).Status
	}
	if status != hw.StatusSuccess {
		r.broken(a, b)
		a.over()
		b.over()
		r.also.Equal(pattern(localRoom, 3), far.buf, "nothing arrived")
		r.also.Equal(op != hw.OpRecv, b.statuses(recvQueue)[in] == hw.StatusFlushed)
	}
	r.drop(a, b, good, far)
	return status
}

// localRoom is longer than any segment that local is called with, in bytes.
const localRoom = 128

// drop closes a pair and frees its regions, so that they don't pile up in a table of
// cases.
func (r *rig) drop(a, b *end, gs ...*region) {
	r.tb.Helper()
	a.over()
	b.over()
	a.close()
	b.close()
	for _, g := range gs {
		r.must.NoError(g.free())
	}
}

func localPrivileges(r *rig) {
	for _, op := range localOps {
		if op.op != hw.OpRecv && !r.has(op.op) {
			continue
		}
		for _, priv := range eachPrivileges() {
			want := hw.StatusLocalProtection
			if r.grants(priv)&op.need != 0 {
				want = hw.StatusSuccess
			}
			g := r.owner(op.op).mem(64, priv)
			r.also.Equal(want, r.local(op.op, g.all()), "%v with %v", op.op, priv)
			r.must.NoError(g.free())
		}
	}
}

// remote runs a write or read on [addr, addr+n) of b's memory, and returns its status.
// When it fails, remote checks that the connection broke and that far is unchanged.
func (r *rig) remote(op hw.Op, far *region, key uint32, addr uint64, n int) hw.Status {
	r.tb.Helper()
	a, b := r.pair()
	near := r.a.mem(max(n, 1), hw.AllPrivileges)
	fill(near.buf, 1)
	before, nearBefore := slices.Clone(far.buf), slices.Clone(near.buf)
	in := b.recv()
	wr := hw.SendWR{Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{near.sge(0, n)}, RKey: key, RemoteAddr: addr}
	status := a.sent(a.post(wr)).Status
	if status == hw.StatusSuccess && op == hw.OpWrite && r.cfg.Gaps&EarlyCompletion != 0 {
		// An early success proves nothing: either a message behind it arrives, or Down.
		a.post(sendOf())
		b.await("a message or the end", func() bool { return b.books[recvQueue].entries[in].done || b.down != hw.ReasonNone })
		if b.down != hw.ReasonNone {
			status = hw.StatusRemoteAccess
		}
	}
	if status != hw.StatusSuccess {
		r.broken(a, b)
		a.over()
		b.over()
		r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[in])
		r.also.Equal(before, far.buf, "the target is untouched")
		r.also.Equal(nearBefore, near.buf)
	}
	r.drop(a, b, near)
	return status
}

func remotePrivileges(r *rig) {
	for _, op := range []localOp{{hw.OpWrite, hw.RemoteWrite}, {hw.OpRead, hw.RemoteRead}} {
		if !r.has(op.op) {
			continue
		}
		for _, priv := range eachPrivileges() {
			want := hw.StatusRemoteAccess
			if priv&op.need != 0 {
				want = hw.StatusSuccess
			}
			g := r.b.mem(64, priv)
			r.also.Equal(want, r.remote(op.op, g, g.mr.RKey(), g.base, 64), "%v with %v", op.op, priv)
			r.must.NoError(g.free())
		}
	}
}

// bound is a range relative to a region of 64 bytes.
type bound struct {
	name string
	off  int64
	n    int
	ok   bool
}

var bounds = []bound{
	{"all of it", 0, 64, true},
	{"its first byte", 0, 1, true},
	{"its last byte", 63, 1, true},
	{"one byte before", -1, 1, false},
	{"from one byte before", -1, 64, false},
	{"to one byte behind", 1, 64, false},
	{"one byte behind", 64, 1, false},
	{"more than it", 0, 65, false},
	{"far behind", 1 << 40, 8, false},
	{"far before", -1 << 40, 8, false},
}

func forEachBound(r *rig, run func(*rig, bound)) {
	for _, b := range bounds {
		run(r, b)
	}
}

func localBound(r *rig, b bound) {
	for _, op := range localOps {
		if op.op != hw.OpRecv && !r.has(op.op) {
			continue
		}
		h := r.owner(op.op)
		// The region lies in the middle of around.
		around := make([]byte, 256)
		g := h.memIn(h.zone, around[64:128], hw.AllPrivileges)
		s := hw.SGE{Addr: g.base + uint64(b.off), Len: uint32(b.n), LKey: g.mr.LKey()}
		want := hw.StatusLocalProtection
		if b.ok {
			want = hw.StatusSuccess
		}
		r.also.Equal(want, r.local(op.op, s), "%v of %s", op.op, b.name)
		r.must.NoError(g.free())
		r.also.Equal(make([]byte, 64), around[:64])
		r.also.Equal(make([]byte, 128), around[128:])
	}
}

func remoteBound(r *rig, b bound) {
	for _, op := range []hw.Op{hw.OpWrite, hw.OpRead} {
		if !r.has(op) {
			continue
		}
		around := make([]byte, 256)
		g := r.b.memIn(r.b.zone, around[64:128], hw.AllPrivileges)
		want := hw.StatusRemoteAccess
		if b.ok {
			want = hw.StatusSuccess
		}
		r.also.Equal(want, r.remote(op, g, g.mr.RKey(), g.base+uint64(b.off), b.n), "%v of %s", op, b.name)
		r.must.NoError(g.free())
		r.also.Equal(make([]byte, 64), around[:64])
		r.also.Equal(make([]byte, 128), around[128:])
	}
	if b.ok || !r.has(hw.OpWrite) {
		return
	}
	// A range at the top of the address space must not wrap around to the region.
	g := r.b.mem(64, hw.AllPrivileges)
	top := ^uint64(0) - uint64(b.n) + 1
	r.also.Equal(hw.StatusRemoteAccess, r.remote(hw.OpWrite, g, g.mr.RKey(), top, b.n), "%s, from the top", b.name)
	r.must.NoError(g.free())
}

// forEachLocal runs every operation with a segment that the device must refuse. The
// function refused makes the segment on the host that uses it.
func forEachLocal(r *rig, refused func(*host) (*region, hw.SGE)) {
	for _, op := range localOps {
		if op.op != hw.OpRecv && !r.has(op.op) {
			continue
		}
		g, s := refused(r.owner(op.op))
		before := slices.Clone(g.buf)
		r.also.Equal(hw.StatusLocalProtection, r.local(op.op, s), "%v", op.op)
		r.also.Equal(before, g.buf)
	}
}

// forEachRemote runs every RDMA operation with a key that the device must refuse.
func forEachRemote(r *rig, g *region, key uint32) {
	for _, op := range []hw.Op{hw.OpWrite, hw.OpRead} {
		if !r.has(op) {
			continue
		}
		fill(g.buf, 9)
		r.also.Equal(hw.StatusRemoteAccess, r.remote(op, g, key, g.base, len(g.buf)), fmt.Sprintf("%v with key %#x", op, key))
	}
}
