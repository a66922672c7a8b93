package soft

import (
	"unsafe"

	"godat/hw"
)

// QP is the part of a queue pair that says what it may reach.
type QP struct {
	Zone  *Zone // immutable
	Scope Zone  // only its address means something: it is that of the queue pair's own windows
}

// Window is a memory window: a second key to part of a region, which a bind
// gives and takes without waiting for anybody's registration. In the table it is
// a region like any other, without local privileges; so the data path knows
// nothing of windows. One that belongs to a queue pair is of that queue pair's
// scope instead of the zone.
//
// A key is in the table, good for nothing, from the call of NextKey that told it.
// A bind makes it good and kills the one before; keys are never used twice.
type Window struct {
	// Immutable.
	dev  *Device
	zone *Zone
	qp   *QP // may be nil: the zone's

	// The device's bindMu guards the rest.
	closed bool
	next   uint32 // what NextKey has told; 0 before it was asked
	key    uint32 // what it is bound under; 0 when it is not
	mr     *MR    // whose memory it may still give access to
}

// NewWindow makes a window for a zone, or for one queue pair of that zone.
func (d *Device) NewWindow(h hw.Zone, q *QP) (hw.Window, error) {
	const op = "NewWindow"
	z, err := d.UseZone(op, h)
	if err != nil {
		return nil, err
	}
	if q != nil && q.Zone != z {
		z.Unuse()
		return nil, d.errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the queue pair is of another zone")
	}
	if err := d.Use(op, Windows); err != nil {
		z.Unuse()
		return nil, err
	}
	return &Window{dev: d, zone: z, qp: q}, nil
}

// NextKey reserves a key. It stays the same until a bind with it is posted, or
// fails. It is 0 when the table is full, or the window closed; such a bind fails.
// It may be called from any goroutine.
func (w *Window) NextKey() uint32 {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	if w.next == 0 && !w.closed {
		if key, err := w.dev.Keys.insert(Region{window: w}); err == nil {
			w.next = key
		}
	}
	return w.next
}

// Bound reports whether the window is bound still.
func (w *Window) Bound() bool {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	return w.key != 0
}

// Spend makes NextKey go on to another key. The post and the execution of a bind
// both call it, in any order.
func (w *Window) Spend(key uint32) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	w.spend(key)
}

func (w *Window) spend(key uint32) {
	if w.next == key {
		w.next = 0
	}
}

// reserved reports whether a key was told by NextKey and not bound yet.
func (w *Window) reserved(key uint32) bool {
	r := w.dev.Keys.Lookup(key)
	return r.window == w && r.Zone == nil
}

// Forget gives up the key of a bind that comes to nothing.
func (w *Window) Forget(key uint32) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	w.spend(key)
	if w.reserved(key) {
		w.dev.Keys.remove(key)
	}
}

// Close unbinds the window, and waits until nobody is in the middle of an access
// through it, as Deregister does.
func (w *Window) Close() error {
	const op = "Window.Close"
	if w == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "no window")
	}
	d := w.dev
	d.bindMu.Lock()
	if w.closed {
		d.bindMu.Unlock()
		return d.errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is closed")
	}
	w.closed = true
	if w.next != 0 {
		d.Keys.remove(w.next)
		w.next = 0
	}
	bound := w.mr != nil
	w.kill()
	w.release()
	d.bindMu.Unlock()
	if bound {
		d.cfg.Grace()
	}
	d.Unuse(Windows)
	w.zone.Unuse()
	return nil
}

// kill makes the key dead. The lock is held.
func (w *Window) kill() {
	if w.key != 0 {
		w.dev.Keys.remove(w.key)
		w.key = 0
	}
}

// release lets the region go. The key is dead; the lock is held.
func (w *Window) release() {
	if w.mr != nil {
		w.mr.bound--
		w.mr = nil
	}
}

// region is what a bind by q makes of the window, or false if it may not. The
// lock is held.
func (w *Window) region(q *QP, b *hw.Bind) (Region, bool) {
	if w.closed || w.zone != q.Zone || w.qp != nil && w.qp != q {
		return Region{}, false
	}
	if b.Len == 0 {
		return Region{}, true
	}
	m, _ := b.MR.(*MR)
	if m == nil || m.dev != w.dev || m.dead || m.zone != w.zone || !w.reserved(b.Key) {
		return Region{}, false
	}
	var need hw.Privileges
	if b.Priv&hw.RemoteRead != 0 {
		need |= hw.LocalRead
	}
	if b.Priv&(hw.RemoteWrite|hw.RemoteAtomic) != 0 {
		need |= hw.LocalWrite
	}
	r := w.dev.Keys.Lookup(m.lkey) // it is not dead
	off := b.Addr - r.Addr
	if m.priv&need != need || off > r.Size || b.Len > r.Size-off {
		return Region{}, false
	}
	r.Base, r.Size, r.Addr = unsafe.Add(r.Base, off), b.Len, b.Addr
	if b.ZeroBased {
		r.Addr = 0
	}
	r.Priv, r.window = b.Priv&Remote, w
	if w.qp != nil {
		r.Zone = &w.qp.Scope
	}
	return r, true
}

// A bind has two halves. Between them its executor waits until nobody is in the
// middle of an access through the key that died.

// BeginBind kills the key that the window is bound under, if the bind may be. A
// window that was bound is in use, by its queue pair's peer alone if own is set.
func (w *Window) BeginBind(q *QP, b *hw.Bind) (ok, used, own bool) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	_, ok = w.region(q, b)
	used = ok && w.mr != nil
	if used {
		w.kill()
	}
	return ok, used, w.qp != nil
}

// EndBind enters the new binding. The old key is dead, and nobody uses it.
func (w *Window) EndBind(q *QP, b *hw.Bind) bool {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	r, ok := w.region(q, b)
	if !ok {
		return false
	}
	w.kill()
	w.release()
	if b.Len == 0 {
		return true
	}
	w.spend(b.Key)
	w.dev.Keys.set(b.Key, &r)
	m := b.MR.(*MR)
	m.bound++
	w.key, w.mr = b.Key, m
	return true
}

// Undo takes back a bind that was done and is reported as flushed.
func (w *Window) Undo(b *hw.Bind) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	if b.Len != 0 && w.key == b.Key {
		w.kill()
		w.release() // whoever deregisters it waits
	}
}

// CheckBind says what of a bind can't be taken at all.
func (d *Device) CheckBind(b *hw.Bind) error {
	const op = "PostSend"
	if b == nil {
		return d.errorf(op, hw.InvalidParameter, hw.NoSubtype, "a bind without its argument")
	}
	if w, ok := b.Window.(*Window); !ok || w == nil || w.dev != d {
		return d.errorf(op, hw.InvalidHandle, hw.HandleRMR, "not a window of this device")
	}
	if m, ok := b.MR.(*MR); b.Len != 0 && (!ok || m == nil || m.dev != d) {
		return d.errorf(op, hw.InvalidHandle, hw.HandleLMR, "not a region of this device")
	}
	if b.ZeroBased && !d.cfg.Attr.ZeroBased {
		return d.errorf(op, hw.ModelNotSupported, hw.NoSubtype, "windows are addressed as their regions are")
	}
	return nil
}

// SpendBinds has the windows of the binds among requests that were taken go on
// to their next keys.
func SpendBinds(wrs []hw.SendWR) {
	for i := range wrs {
		if b := wrs[i].Bind; wrs[i].Op == hw.OpBind {
			b.Window.(*Window).Spend(b.Key)
		}
	}
}
