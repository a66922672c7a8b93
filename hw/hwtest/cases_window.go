package hwtest

import (
	"errors"
	"fmt"
	"slices"

	"godat/hw"
)

// windowCases are about memory windows.
var windowCases = []contractCase{
	{"a device without windows refuses binds", func(r *rig) {
		if binds(r) {
			return // the other cases test them
		}
		_, b := r.pair()
		_, n, err := b.tryPost(hw.SendWR{Op: hw.OpBind, Bind: &hw.Bind{}})
		r.also.Zero(n)
		r.also.ErrorIs(err, errors.ErrUnsupported)
	}},
	{"a bind without a window of the device is refused", ifBinds(func(r *rig) {
		a, b := r.pair()
		for _, bind := range []*hw.Bind{nil, {}} {
			_, n, err := b.tryPost(hw.SendWR{Op: hw.OpBind, Bind: bind})
			r.also.Zero(n)
			r.also.Error(err)
		}
		roundTrip(r, a, b)
	})},
	{"a window gives the peer part of a region", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(localAll) // the region itself has no remote privilege
		key := w.NextKey()
		r.also.Equal(key, w.NextKey(), "it stays the same until the bind")
		b.bind(w, g, 16, 32, remoteAll)
		r.also.NotEqual(key, w.NextKey(), "the next bind gives another")
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, g.base+16, 32))
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpRead, key, g.base+47, 1))
		roundTrip(r, a, b)
		r.also.Equal(make([]byte, 16), g.buf[:16])
		r.also.Equal(pattern(32, accessSeed), g.buf[16:48])
		r.also.Equal(make([]byte, 16), g.buf[48:])
	})},
	{"a window's key is refused beyond its range", ifBinds(windowBounds)},
	{"a window gives the privileges it was bound with, as far as the region has them", ifBinds(windowPrivileges)},
	{"a window's key names no local segment", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(hw.AllPrivileges)
		key := b.bind(w, g, 0, 64, remoteAll)
		a.recv()
		out := b.post(sendOf(hw.SGE{Addr: g.base, Len: 8, LKey: key}))
		r.also.Equal(hw.StatusLocalProtection, b.sent(out).Status)
		r.broken(a, b)
	})},
	{"a key is refused before its bind", ifBinds(func(r *rig) {
		g := r.b.mem(64, hw.AllPrivileges)
		r.deadKey(r.b.newWindow(r.b.zone, nil).NextKey(), g)
	})},
	{"a bind out of the region, or of a dead object, fails and breaks the connection", ifBinds(bindFailures)},
	{"a message behind a bind finds it done", ifBinds(bindThenSend)},
	{"a window bound again is dead under its old key", ifBinds(rebind)},
	{"a window that is unbound is dead", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(localAll)
		key := b.bind(w, g, 0, 64, remoteAll)
		r.also.Equal(hw.StatusSuccess, b.sent(b.post(unbind(w))).Status)
		r.also.Equal(hw.StatusSuccess, b.sent(b.post(unbind(w))).Status, "once more")
		roundTrip(r, a, b)
		r.deadKey(key, g)
	})},
	{"a read into a window goes where it is bound to", ifBinds(ifHas(hw.OpReadToRMR, readIntoWindow))},
	{"Close unbinds", ifBinds(func(r *rig) {
		_, b, w, g := r.windowed(localAll)
		key := b.bind(w, g, 0, 64, remoteAll)
		w.close()
		r.also.NoError(g.free(), "nothing is bound to it")
		h := r.b.mem(64, localAll)
		r.deadKey(key, h)
		w = r.b.newWindow(r.b.zone, nil)
		key = w.NextKey()
		w.close()
		r.deadKey(key, h)
	})},
	{"Deregister fails with LMR_IN_USE while a window is bound", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(localAll)
		other := r.b.mem(64, localAll)
		key := b.bind(w, g, 0, 64, remoteAll)
		r.also.ErrorIs(g.mr.Deregister(), &hw.Error{Type: hw.InvalidState, Sub: hw.StateLMRInUse})
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, g.base, 64), "nothing has changed")
		b.bind(w, other, 0, 64, remoteAll)
		r.also.NoError(g.free())
		r.also.Error(other.mr.Deregister())
		r.also.Equal(hw.StatusSuccess, b.sent(b.post(unbind(w))).Status)
		r.also.NoError(other.free())
	})},
	{"a queue pair's window is reached and bound through it alone", ifBinds(ownWindow)},
	{"a zone's window is reached through all its queue pairs", ifBinds(func(r *rig) {
		_, b := r.pair()
		c, d := r.pair()
		g := r.b.mem(64, localAll)
		w := r.b.newWindow(r.b.zone, nil)
		r.also.Equal(hw.StatusSuccess, r.access(c, hw.OpWrite, b.bind(w, g, 0, 64, remoteAll), g.base, 64))
		r.also.Equal(hw.StatusSuccess, r.access(c, hw.OpWrite, d.bind(w, g, 0, 64, remoteAll), g.base, 64))
	})},
	{"binds are flushed with the rest", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(localAll)
		a.over()
		b.awaitDown()
		key := w.NextKey()
		out := b.post(bindOf(w, g, 0, 64, remoteAll))
		b.over()
		r.also.Equal(hw.StatusFlushed, b.sent(out).Status)
		r.also.NoError(g.free(), "nothing is bound")
		r.deadKey(key, r.b.mem(64, localAll))
	})},
	{"a zone does not close under a window", ifBinds(func(r *rig) {
		r.b.holdsZone(func(zone hw.Zone) func() { return r.b.newWindow(zone, nil).close })
	})},
	{"a window for a queue pair may be asked for beside the queue pair's close", ifBinds(func(r *rig) {
		for range 4 {
			e := r.b.newEnd()
			together(e.close, func() {
				w, err := r.b.dev.(hw.Binder).NewWindow(r.b.zone, e.qp)
				if err != nil {
					r.also.ErrorIs(err, hw.ErrInvalidHandle)
					return
				}
				r.also.NoError(w.Close())
			})
		}
	})},
	{"a window is addressed from zero where Attr.ZeroBased says so", ifBinds(func(r *rig) {
		a, b, w, g := r.windowed(localAll)
		wr := bindOf(w, g, 16, 32, remoteAll)
		wr.Bind.ZeroBased = true
		if !r.b.attr.ZeroBased {
			_, _, err := b.tryPost(wr)
			r.also.Error(err)
			return
		}
		key := wr.Bind.Key
		r.must.Equal(hw.StatusSuccess, b.sent(b.post(wr)).Status)
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, 0, 32))
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpRead, key, 31, 1))
		roundTrip(r, a, b)
		r.also.Equal(pattern(32, accessSeed), g.buf[16:48])
		r.also.Equal(hw.StatusRemoteAccess, r.access(a, hw.OpWrite, key, 31, 2))
	})},
	{"an atomic wants its target aligned in memory, wherever a window counts from", ifBinds(ifHas(hw.OpFetchAdd, ifHas(hw.OpCompareSwap, atomicsThroughWindows)))},
}

const (
	localAll  = hw.LocalRead | hw.LocalWrite
	remoteAll = hw.RemoteRead | hw.RemoteWrite
)

func binds(r *rig) bool {
	_, ok := r.b.dev.(hw.Binder)
	return ok
}

// ifBinds runs a case on devices with windows, RDMA writes and RDMA reads.
func ifBinds(run func(*rig)) func(*rig) {
	return only(binds, "the device has no windows: the first case shows what it says", ifHas(hw.OpWrite, ifHas(hw.OpRead, run)))
}

// win is a window that the case need not close.
type win struct {
	hw.Window
	host   *host
	closed bool
}

func (h *host) newWindow(zone hw.Zone, e *end) *win {
	var qp hw.QP
	if e != nil {
		qp = e.qp
	}
	w, err := h.dev.(hw.Binder).NewWindow(zone, qp)
	h.rig.must.NoError(err)
	v := &win{Window: w, host: h}
	h.later = append(h.later, func() {
		if !v.closed {
			h.rig.also.NoError(w.Close())
		}
	})
	return v
}

func (w *win) close() {
	w.closed = true
	w.host.rig.must.NoError(w.Window.Close())
}

// windowed makes a pair, and on b's host a window of the zone and a region of 64 bytes.
func (r *rig) windowed(priv hw.Privileges) (a, b *end, w *win, g *region) {
	a, b = r.pair()
	return a, b, r.b.newWindow(r.b.zone, nil), r.b.mem(64, priv)
}

// bindOf binds a window to n bytes of g, under the window's next key.
func bindOf(w *win, g *region, off, n int, priv hw.Privileges) hw.SendWR {
	return hw.SendWR{Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{
		Window: w.Window, MR: g.mr, Addr: g.base + uint64(off), Len: uint64(n), Priv: priv, Key: w.NextKey(),
	}}
}

func unbind(w *win) hw.SendWR {
	return hw.SendWR{Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{Window: w.Window}}
}

// bind binds a window, waits for the completion and returns the key.
func (e *end) bind(w *win, g *region, off, n int, priv hw.Privileges) uint32 {
	wr := bindOf(w, g, off, n, priv)
	key := wr.Bind.Key
	e.host.rig.must.Equal(hw.StatusSuccess, e.sent(e.post(wr)).Status)
	return key
}

const accessSeed = 77

// access runs a write or read by a on [addr, addr+n) of its peer's memory, and returns
// its status. It writes the pattern of accessSeed.
func (r *rig) access(a *end, op hw.Op, key uint32, addr uint64, n int) hw.Status {
	near := a.host.mem(n, hw.AllPrivileges)
	fill(near.buf, accessSeed)
	status := a.sent(a.post(hw.SendWR{Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{near.all()}, RKey: key, RemoteAddr: addr})).Status
	if status == hw.StatusSuccess && op == hw.OpWrite && r.cfg.Gaps&EarlyCompletion != 0 {
		// An early success proves nothing: a read of 0 bytes behind it shows the outcome.
		if a.sent(a.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled})).Status != hw.StatusSuccess {
			status = hw.StatusRemoteAccess
		}
	}
	return status
}

// deadKey checks that a key of b gives no access to g.
func (r *rig) deadKey(key uint32, g *region) {
	before := slices.Clone(g.buf)
	for _, p := range r.probes(true) {
		p.check(r, g, key, g.base, len(g.buf), false, "a dead key")
	}
	r.also.Equal(before, g.buf)
}

func windowBounds(r *rig) {
	for _, c := range bounds {
		for _, p := range r.probes(true) {
			_, b := r.pair()
			g := r.b.mem(256, hw.AllPrivileges) // its own key would give access to all of it
			key := b.bind(r.b.newWindow(r.b.zone, nil), g, 64, 64, remoteAll)
			p.check(r, g, key, g.base+64+uint64(c.off), c.n, c.ok, c.name)
		}
	}
}

func windowPrivileges(r *rig) {
	for _, have := range []hw.Privileges{0, hw.LocalRead, hw.LocalWrite, localAll} {
		for _, give := range []hw.Privileges{hw.RemoteRead, hw.RemoteWrite, remoteAll} {
			a, b, w, g := r.windowed(have)
			may := r.grants(have)
			ok := (give&hw.RemoteRead == 0 || may&hw.LocalRead != 0) && (give&hw.RemoteWrite == 0 || may&hw.LocalWrite != 0)
			key := w.NextKey()
			out := b.post(bindOf(w, g, 0, 64, give))
			if !ok {
				r.also.Equal(hw.StatusBindFailed, b.sent(out).Status, "%v of a region with %v", give, have)
				r.broken(a, b)
				continue
			}
			r.must.Equal(hw.StatusSuccess, b.sent(out).Status, "%v of a region with %v", give, have)
			for _, p := range r.probes(true) {
				p.check(r, g, key, g.base, 64, give&p.need != 0, fmt.Sprint("a window with ", give))
			}
		}
	}
}

func bindFailures(r *rig) {
	zone := r.b.newZone()
	for name, spoil := range map[string]func(*win, *region, *hw.Bind){
		"one byte before":      func(_ *win, _ *region, b *hw.Bind) { b.Addr-- },
		"one byte too long":    func(_ *win, _ *region, b *hw.Bind) { b.Len++ },
		"one byte behind":      func(_ *win, _ *region, b *hw.Bind) { b.Addr, b.Len = b.Addr+64, 1 },
		"around all addresses": func(_ *win, _ *region, b *hw.Bind) { b.Addr, b.Len = b.Addr+8, ^uint64(0)-3 },
		"a key that is not the window's": func(w *win, _ *region, b *hw.Bind) {
			b.Key = w.host.newWindow(w.host.zone, nil).NextKey()
		},
		"the region's key":      func(_ *win, g *region, b *hw.Bind) { b.Key = g.mr.LKey() },
		"a region that is gone": func(_ *win, g *region, _ *hw.Bind) { r.must.NoError(g.free()) },
		"another zone's region": func(_ *win, _ *region, b *hw.Bind) { b.MR = r.b.memIn(zone, make([]byte, 64), localAll).mr },
		"another zone's window": func(_ *win, _ *region, b *hw.Bind) {
			v := r.b.newWindow(zone, nil)
			b.Window, b.Key = v.Window, v.NextKey()
		},
		"a window that was closed": func(w *win, _ *region, _ *hw.Bind) { w.close() },
	} {
		a, b, w, g := r.windowed(localAll)
		wr := bindOf(w, g, 0, 64, remoteAll)
		spoil(w, g, wr.Bind)
		out := b.post(wr)
		r.also.Equal(hw.StatusBindFailed, b.sent(out).Status, name)
		r.broken(a, b)
		if !g.freed {
			r.also.NoError(g.free(), "%s: nothing is bound to it", name)
		}
	}
}

// bindThenSend posts a slow write, a bind and a message in one post. The peer uses the
// key as soon as the message arrives.
func bindThenSend(r *rig) {
	a, b, w, g := r.windowed(localAll)
	big, far := r.b.mem(1<<20, localAll), r.a.mem(1<<20, hw.AllPrivileges)
	for i := range 3 {
		in := a.recv()
		wr := bindOf(w, g, 0, 64, remoteAll)
		key := wr.Bind.Key
		b.post(writeTo(far, 0, big.all()), wr, sendOf())
		*wr.Bind = hw.Bind{} // the caller may reuse it after the post
		r.must.Equal(hw.StatusSuccess, a.received(in).Status)
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, g.base, 64), "bind %d", i)
	}
}

func rebind(r *rig) {
	a, b, w, g := r.windowed(localAll)
	other := r.b.mem(64, localAll)
	seen := map[uint32]bool{}
	var keys []uint32
	for i := range 8 {
		to := g
		if i%2 == 1 {
			to = other
		}
		key := b.bind(w, to, 0, 64, remoteAll)
		r.also.False(seen[key], "a key comes again")
		seen[key] = true
		keys = append(keys, key)
		r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, to.base, 64))
	}
	for _, old := range keys[:7] {
		r.deadKey(old, g)
	}
	// The second bind may be posted before the first has completed.
	one := bindOf(w, g, 0, 64, remoteAll)
	first := b.post(one)
	two := bindOf(w, other, 0, 64, remoteAll)
	keys = []uint32{one.Bind.Key, two.Bind.Key}
	second := b.post(two)
	r.also.NotEqual(keys[0], keys[1])
	r.also.Equal(hw.StatusSuccess, b.sent(first).Status)
	r.also.Equal(hw.StatusSuccess, b.sent(second).Status)
	r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, keys[1], other.base, 64))
	r.deadKey(keys[0], g)
}

func ownWindow(r *rig) {
	a, b := r.pair()
	c, d := r.pair()
	g := r.b.mem(64, localAll)
	w := r.b.newWindow(r.b.zone, b)
	key := b.bind(w, g, 0, 64, remoteAll)
	r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpWrite, key, g.base, 64))
	r.also.Equal(hw.StatusRemoteAccess, r.access(c, hw.OpWrite, key, g.base, 64))
	r.broken(c, d)
	r.also.Equal(hw.StatusSuccess, r.access(a, hw.OpRead, key, g.base, 64))

	c, d = r.pair()
	r.also.Equal(hw.StatusBindFailed, d.sent(d.post(bindOf(w, g, 0, 64, remoteAll))).Status)
	r.broken(c, d)
	roundTrip(r, a, b)
}
