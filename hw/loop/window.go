package loop

import (
	"runtime"
	"time"
	"unsafe"

	"godat/hw"
)

// window is a memory window: a second key to part of a region, which a bind
// gives and takes without waiting for anybody's registration. In the table it is
// a region like any other, without local privileges; so the data path knows
// nothing of windows. One that belongs to a queue pair is of that queue pair's
// scope instead of the zone: only pipes towards it have that.
//
// A key is in the table, good for nothing, from the call of NextKey that told it.
// A bind makes it good and kills the one before; keys are never used twice.
type window struct {
	// Immutable.
	dev  *device
	zone *zone
	qp   *queuePair // may be nil: the zone's

	// The device's bindMu guards the rest.
	closed bool
	next   uint32 // what NextKey has told; 0 before it was asked
	key    uint32 // what it is bound under; 0 when it is not
	mr     *mr    // whose memory it may still give access to
}

// NewWindow makes a window for a zone, or for one queue pair of that zone.
func (d *device) NewWindow(h hw.Zone, qp hw.QP) (hw.Window, error) {
	const op = "loop.NewWindow"
	q, ok := qp.(*queuePair)
	if qp != nil && (!ok || q == nil || q.dev != d || q.life == nil) {
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	z, err := d.useZone(op, h)
	if err != nil {
		return nil, err
	}
	if q != nil && q.zone != z {
		d.unuse(&z.users)
		return nil, hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the queue pair is of another zone")
	}
	if err := d.use(op, &d.windows, maxWindows, hw.ResourceMemoryRegion); err != nil {
		d.unuse(&z.users)
		return nil, err
	}
	return &window{dev: d, zone: z, qp: q}, nil
}

// NextKey reserves a key. It stays the same until a bind with it is posted, or
// fails. It is 0 when the table is full, or the window closed; such a bind fails.
// It may be called from any goroutine.
func (w *window) NextKey() uint32 {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	if w.next == 0 && !w.closed {
		if key, _, err := w.dev.keys.Insert(func(uint32) region { return region{window: w} }); err == nil {
			w.next = key
		}
	}
	return w.next
}

// spend makes NextKey go on to another key. The post and the execution of a bind
// both call it, in any order.
func (w *window) spend(key uint32) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	w.spendLocked(key)
}

func (w *window) spendLocked(key uint32) {
	if w.next == key {
		w.next = 0
	}
}

// reserved reports whether a key was told by NextKey and not bound yet.
func (w *window) reserved(key uint32) bool {
	r := w.dev.keys.Lookup(key)
	return r != nil && r.window == w && r.zone == nil
}

// forget gives up the key of a bind that comes to nothing.
func (w *window) forget(key uint32) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	w.spendLocked(key)
	if w.reserved(key) {
		w.dev.keys.Remove(key)
	}
}

// Close unbinds the window, and waits until nobody is in the middle of an access
// through it, as Deregister does.
func (w *window) Close() error {
	const op = "loop.Window.Close"
	if w == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "no window")
	}
	d := w.dev
	d.bindMu.Lock()
	if w.closed {
		d.bindMu.Unlock()
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is closed")
	}
	w.closed = true
	if w.next != 0 {
		d.keys.Remove(w.next)
		w.next = 0
	}
	bound := w.mr != nil
	w.kill()
	w.release()
	d.bindMu.Unlock()
	if bound {
		d.grace()
	}
	d.unuse(&d.windows)
	d.unuse(&w.zone.users)
	return nil
}

// kill makes the key dead. The lock is held.
func (w *window) kill() {
	if w.key != 0 {
		w.dev.keys.Remove(w.key)
		w.key = 0
	}
}

// release lets the region go. The key is dead; the lock is held.
func (w *window) release() {
	if w.mr != nil {
		w.mr.bound--
		w.mr = nil
	}
}

// region is what a bind makes of the window, or false if it may not. The lock is
// held.
func (w *window) region(p *pipe, b *hw.Bind) (region, bool) {
	q := p.from.qp
	if w.closed || w.zone != q.zone || w.qp != nil && w.qp != q {
		return region{}, false
	}
	if b.Len == 0 {
		return region{}, true
	}
	m, _ := b.MR.(*mr)
	if m == nil || m.dev != w.dev || m.dead || m.zone != w.zone || !w.reserved(b.Key) {
		return region{}, false
	}
	var need hw.Privileges
	if b.Priv&hw.RemoteRead != 0 {
		need |= hw.LocalRead
	}
	if b.Priv&(hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		need |= hw.LocalWrite
	}
	r := *w.dev.keys.Lookup(m.key) // it is not dead
	off := b.Addr - r.addr
	if m.priv&need != need || off > r.size || b.Len > r.size-off {
		return region{}, false
	}
	r.base, r.size, r.addr = unsafe.Add(r.base, off), b.Len, b.Addr
	if b.ZeroBased {
		r.addr = 0
	}
	r.priv, r.window = b.Priv&remote, w
	if w.qp != nil {
		r.zone = &w.qp.scope
	}
	return r, true
}

// bind binds the window, or unbinds it. What follows in the queue is executed
// after it, so it finds it done.
func (p *pipe) bind(wr *hw.SendWR) verdict {
	b := wr.Bind
	w := b.Window.(*window) // see badBind
	w.dev.bindMu.Lock()
	_, ok := w.region(p, b)
	busy := ok && w.mr != nil
	if busy {
		w.kill()
	}
	w.dev.bindMu.Unlock()
	if busy && !p.settle(w.dev, w.qp) {
		return tooLong
	}
	if !ok || !w.rebind(p, b) {
		w.forget(b.Key)
		return p.fail(wr, hw.StatusBindFailed)
	}
	return p.sent(wr, 0)
}

// rebind enters the new binding. The old key is dead, and nobody uses it.
func (w *window) rebind(p *pipe, b *hw.Bind) bool {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	r, ok := w.region(p, b)
	if !ok {
		return false
	}
	w.kill()
	w.release()
	if b.Len == 0 {
		return true
	}
	w.spendLocked(b.Key)
	w.dev.keys.Set(b.Key, r)
	m := b.MR.(*mr)
	m.bound++
	w.key, w.mr = b.Key, m
	return true
}

// badBind says what of a bind can't be taken at all.
func (p *pipe) badBind(b *hw.Bind) error {
	const op = "loop.PostSend"
	if b == nil {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a bind without its argument")
	}
	d := p.from.qp.dev
	if w, ok := b.Window.(*window); !ok || w == nil || w.dev != d {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "not a window of this device")
	}
	if m, ok := b.MR.(*mr); b.Len != 0 && (!ok || m == nil || m.dev != d) {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "not a region of this device")
	}
	return nil
}

// invalidate kills a key of the target's on the source's behalf, before a message
// is moved. A window is unbound; a region's key has no remote rights any more.
// With another verdict than done nothing is to be moved.
func (p *pipe) invalidate(wr *hw.SendWR) verdict {
	d := p.to.qp.dev
	if !p.killed {
		if !d.invalidate(&p.dst, wr.Imm) {
			return p.fail(wr, hw.StatusRemoteAccess)
		}
		p.killed = true
	}
	if !p.settle(d, nil) {
		return tooLong
	}
	p.killed = false
	return done
}

// invalidated completes a send that has invalidated a key.
func (p *pipe) invalidated(wr *hw.SendWR, n uint32) verdict {
	p.received(n, hw.OpRecvInvalidate, hw.WCInvalidated|solicited(wr), wr.Imm)
	at := p.nSends
	v := p.sent(wr, n)
	if p.nSends > at {
		p.sends[at].Op = hw.OpSend
	}
	return v
}

// invalidate makes a remote key dead that reaches what the end may reach.
func (d *device) invalidate(e *end, key uint32) bool {
	d.bindMu.Lock()
	defer d.bindMu.Unlock()
	r := d.keys.Lookup(key)
	if r == nil || r.priv&remote == 0 || r.zone != e.zone && r.zone != e.scope {
		return false
	}
	if w := r.window; w != nil {
		w.kill()
		w.release() // whoever deregisters it waits, too
		return true
	}
	now := *r
	now.priv &^= remote
	return d.keys.Set(key, now)
}

// settle waits until no other pipe is in the middle of an access through a key
// that was dead before; all that is towards one queue pair if scope is set. It
// reports false if that can't be had at once and the pipe's holder, who is no
// worker, may not wait. What waits touches no memory and says so, for two that
// wait for each other.
func (p *pipe) settle(d *device, scope *queuePair) bool {
	var wait []busy
	if scope == nil {
		wait = d.inProgress(p)
	} else if in := scope.in.Load(); in != nil && in != p {
		wait = []busy{{in, in.word.Load()}}
	}
	for _, b := range wait {
		for spin := 0; !b.p.movedOn(b.w); spin++ {
			if !p.patient {
				return false
			}
			p.step()
			rest(spin)
		}
	}
	return true
}

// rest passes the time of who waits for a copy.
func rest(spin int) {
	if spin < 100 {
		runtime.Gosched()
	} else {
		time.Sleep(20 * time.Microsecond)
	}
}
