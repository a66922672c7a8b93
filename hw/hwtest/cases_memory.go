package hwtest

import (
	"bytes"
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
	{"each operation needs its privilege on the local side", func(r *rig) { privileges(r, false) }},
	{"each operation needs its privilege on the remote side", func(r *rig) { privileges(r, true) }},
	{"local segments stay within their region", func(r *rig) { withinBounds(r, false) }},
	{"remote ranges stay within their region", func(r *rig) { withinBounds(r, true) }},
	{"local segments are of the queue pair's zone", func(r *rig) { otherZone(r, false) }},
	{"remote ranges are of the peer's zone", func(r *rig) { otherZone(r, true) }},
	{"the local key of a region that is gone is refused", func(r *rig) {
		r.refused(false, func(h *host) (*region, uint32) {
			g := h.mem(64, hw.AllPrivileges)
			key := g.mr.LKey()
			r.must.NoError(g.free())
			h.mem(64, hw.AllPrivileges) // may reuse the key's index
			return g, key
		})
	}},
	{"the remote key of a region that is gone is refused", func(r *rig) {
		r.refused(true, func(h *host) (*region, uint32) {
			g := h.mem(64, hw.AllPrivileges)
			key := g.mr.RKey()
			r.must.NoError(g.free())
			again := h.memIn(h.zone, g.buf, hw.AllPrivileges)
			r.also.NotEqual(key, again.mr.RKey(), "a key is not given again at once")
			return g, key
		})
	}},
	{"a made-up key is refused", func(r *rig) {
		g := r.b.mem(64, hw.AllPrivileges)
		for _, key := range []uint32{0, 1, ^uint32(0), g.mr.RKey() ^ 1, g.mr.RKey() ^ 1<<20} {
			if key != g.mr.LKey() { // some devices have one key for local and remote use
				r.refused(true, func(*host) (*region, uint32) { return g, key })
			}
		}
	}},
	{"two registrations of the same memory are independent", ifHas(hw.OpWrite, func(r *rig) {
		a, b := r.pair()
		buf := make([]byte, 64)
		one, two := r.b.memIn(r.b.zone, buf, hw.AllPrivileges), r.b.memIn(r.b.zone, buf, hw.AllPrivileges)
		src := r.a.mem(64, hw.LocalRead)
		fill(src.buf, 7)
		r.must.NoError(one.free())
		r.also.Equal(hw.StatusSuccess, a.sent(a.post(writeTo(two, 0, src.all()))).Status)
		roundTrip(r, a, b)
		r.also.Equal(src.buf, buf)
	})},
	{"a write goes to the memory that a region got in the last exchange", ifLends(lend)},
}

// lentSize is longer than any FPDU, in bytes.
const lentSize = 256 << 10

// ifLends runs a case on devices that have writes, and exchange the memory of a region.
func ifLends(run func(*rig)) func(*rig) {
	return ifHas(hw.OpWrite, only(func(r *rig) bool {
		_, ok := r.b.mem(1, hw.RemoteWrite).mr.(hw.Remapper)
		return ok
	}, "the device exchanges no region's memory", run))
}

// lend exchanges the memory of a region several times, and writes to it from the peer each time.
func lend(r *rig) {
	a, b := r.pair()
	near, far := r.a.mem(lentSize, hw.LocalRead), r.b.mem(lentSize, hw.LocalRead|hw.RemoteWrite)
	m := far.mr.(hw.Remapper)
	former := far.buf
	for round := range byte(4) {
		mem := make([]byte, lentSize)
		r.must.NoError(m.Remap(mem[:1])) // of another length, as between two users of a region
		r.must.NoError(m.Remap(mem))
		m.Settle()
		clear(former)
		fill(near.buf, round)
		in := b.recv()
		out := a.post(writeTo(far, 0, near.all()), sendOf())
		b.received(in)
		r.also.True(bytes.Equal(near.buf, mem), "round %d", round)
		r.also.True(bytes.Equal(make([]byte, lentSize), former), "the write changed the former memory")
		r.also.Equal(hw.StatusSuccess, a.sent(out+1).Status)
		former = mem
	}
	r.must.NoError(far.free())
	r.also.ErrorIs(m.Remap(former), hw.ErrInvalidHandle)
	m.Settle()
}

// probe is an operation that accesses a region, locally or by its remote key, and the
// privilege that this needs.
type probe struct {
	op     hw.Op
	need   hw.Privileges
	remote bool
}

var allProbes = []probe{
	{hw.OpSend, hw.LocalRead, false},
	{hw.OpRecv, hw.LocalWrite, false},
	{hw.OpWrite, hw.LocalRead, false},
	{hw.OpRead, hw.LocalWrite, false},
	{hw.OpWrite, hw.RemoteWrite, true},
	{hw.OpRead, hw.RemoteRead, true},
}

// probes are the probes of one side whose operations both devices have.
func (r *rig) probes(remote bool) (ps []probe) {
	for _, p := range allProbes {
		if p.remote == remote && (p.op == hw.OpRecv || r.has(p.op)) {
			ps = append(ps, p)
		}
	}
	return ps
}

// host is the host that owns the region.
func (p probe) host(r *rig) *host {
	if p.remote || p.op == hw.OpRecv {
		return r.b
	}
	return r.a
}

// key is the key by which the operation names the region.
func (p probe) key(g *region) uint32 {
	if p.remote {
		return g.mr.RKey()
	}
	return g.mr.LKey()
}

// check runs the operation on [addr, addr+n) by a key, on a new connection. g is the
// region at which it aims, and ok says whether the device must allow it.
func (p probe) check(r *rig, g *region, key uint32, addr uint64, n int, ok bool, what string) {
	var got, want hw.Status
	if p.remote {
		got, want = r.remote(p.op, g, key, addr, n), hw.StatusRemoteAccess
	} else {
		got, want = r.local(p.op, hw.SGE{Addr: addr, Len: uint32(n), LKey: key}), hw.StatusLocalProtection
	}
	if ok {
		want = hw.StatusSuccess
	}
	r.also.Equal(want, got, "%v of %s", p.op, what)
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
		over(a, b)
		r.also.Equal(pattern(localRoom, 3), far.buf, "nothing arrived")
		r.also.Equal(op != hw.OpRecv, b.statuses(recvQueue)[in] == hw.StatusFlushed)
	}
	r.drop(a, b, good, far)
	return status
}

// localRoom is longer than any segment that local is called with, in bytes.
const localRoom = 128

// drop ends and closes a pair and frees its regions, so that they don't pile up in a
// table of cases.
func (r *rig) drop(a, b *end, gs ...*region) {
	over(a, b)
	r.closePair(a, b, gs...)
}

// remote runs a write or read on [addr, addr+n) of b's memory, and returns its status.
// When it fails, remote checks that the connection broke and that far is unchanged.
func (r *rig) remote(op hw.Op, far *region, key uint32, addr uint64, n int) hw.Status {
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
		over(a, b)
		r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[in])
		r.also.Equal(before, far.buf, "the target is untouched")
		r.also.Equal(nearBefore, near.buf)
	}
	r.drop(a, b, near)
	return status
}

func privileges(r *rig, remote bool) {
	for _, p := range r.probes(remote) {
		for _, priv := range eachPrivileges() {
			g := p.host(r).mem(64, priv)
			p.check(r, g, p.key(g), g.base, 64, r.grants(priv)&p.need != 0, fmt.Sprint("a region with ", priv))
			r.must.NoError(g.free())
		}
	}
}

// bounds are ranges relative to a region of 64 bytes.
var bounds = []struct {
	name string
	off  int64
	n    int
	ok   bool
}{
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

func withinBounds(r *rig, remote bool) {
	for _, c := range bounds {
		for _, p := range r.probes(remote) {
			around, h := make([]byte, 256), p.host(r)
			g := h.memIn(h.zone, around[64:128], hw.AllPrivileges)
			p.check(r, g, p.key(g), g.base+uint64(c.off), c.n, c.ok, c.name)
			if remote && !c.ok {
				// A range at the top of the address space must not wrap around to the region.
				p.check(r, g, p.key(g), -uint64(c.n), c.n, false, c.name+", from the top")
			}
			r.must.NoError(g.free())
			r.also.Equal(make([]byte, 64), around[:64])
			r.also.Equal(make([]byte, 128), around[128:])
		}
	}
}

func otherZone(r *rig, remote bool) {
	r.refused(remote, func(h *host) (*region, uint32) {
		g := h.memIn(h.newZone(), make([]byte, 64), hw.AllPrivileges)
		return g, probe{remote: remote}.key(g)
	})
}

// refused runs every operation with a key that the device must refuse. setup makes the
// key, and the region at which the operation aims, on the host that owns the region.
func (r *rig) refused(remote bool, setup func(*host) (*region, uint32)) {
	for _, p := range r.probes(remote) {
		g, key := setup(p.host(r))
		fill(g.buf, 9)
		p.check(r, g, key, g.base, len(g.buf), false, fmt.Sprintf("memory by the key %#x", key))
		r.also.Equal(pattern(len(g.buf), 9), g.buf)
	}
}
