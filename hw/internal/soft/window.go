package soft

import (
	"unsafe"

	"godat/hw"
)

// Window is a memory window: a second key to part of a region, which a bind gives and
// takes without a new registration. In the table it is a region like any other,
// without local privileges; so the data path knows nothing of windows. The region of
// a queue pair's own window has the queue pair's scope in place of the zone.
//
// NextKey enters a key into the table, where the key gives no access until a bind uses
// it. That bind makes the key valid and kills the window's previous key. No key is used
// twice.
type Window struct {
	// Immutable.
	dev  *Device
	zone *Zone
	qp   *QP // nil if any queue pair of the zone may use the window

	// The device's bindMu guards the rest.
	closed bool
	next   uint32 // the key that NextKey returns; 0 until it has reserved one
	key    uint32 // the key of the binding; 0 when the window is not bound
	mr     *MR    // the region that the window counts as bound to; may be nil
	used   bool   // it has been bound: accesses by a key that died may be in progress
}

// NewWindow makes a window for a zone, or for one queue pair of that zone: then peers reach it
// through that queue pair's connections alone.
func (d *Device) NewWindow(h hw.Zone, qp hw.QP) (hw.Window, error) {
	const op = "NewWindow"
	var q *QP
	if qp != nil {
		of, ok := qp.(interface{ self() *QP })
		if !ok || of.self().dev != d || of.self().closed.Load() {
			return nil, d.Errorf(op, hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
		}
		q = of.self()
	}
	z, err := d.UseZone(op, h)
	if err != nil {
		return nil, err
	}
	if q != nil && q.Zone != z {
		z.Unuse()
		return nil, d.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the queue pair is of another zone")
	}
	if err := d.Use(op, Windows); err != nil {
		z.Unuse()
		return nil, err
	}
	return &Window{dev: d, zone: z, qp: q}, nil
}

// NextKey reserves a key and returns it. It returns the same key until a bind with
// that key is posted or fails. It returns 0 when the table is full or the window is
// closed; a bind with key 0 fails. Any goroutine may call it.
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

// Bound reports whether the window is still bound.
func (w *Window) Bound() bool {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	return w.key != 0
}

// Spend makes NextKey go on to another key, if key is the one that it returns. The
// post and the execution of a bind both spend its key, in any order.
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

// reserved reports whether NextKey has returned the key and no bind has used it yet.
func (w *Window) reserved(key uint32) bool {
	r := w.dev.Keys.Lookup(key)
	return r.window == w && r.Zone == nil
}

// Forget gives up the key of a bind that fails or is never executed. If the bind has killed the
// key before it, the window is bound to nothing any more, and its region is free.
func (w *Window) Forget(key uint32) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	w.spend(key)
	if w.reserved(key) {
		w.dev.Keys.remove(key)
	}
	if w.key == 0 {
		w.release() // Deregister of the region waits
	}
}

// Close unbinds the window and waits until no access through it is in progress, as
// Deregister does.
func (w *Window) Close() error {
	const op = "Window.Close"
	if w == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "no window")
	}
	d := w.dev
	d.bindMu.Lock()
	if w.closed {
		d.bindMu.Unlock()
		return d.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "the window is closed")
	}
	w.closed = true
	if w.next != 0 {
		d.Keys.remove(w.next)
		w.next = 0
	}
	bound := w.used
	w.kill()
	w.release()
	d.bindMu.Unlock()
	if bound {
		w.zone.Await()
	}
	d.Unuse(Windows)
	w.zone.Unuse()
	return nil
}

// kill takes the key of the binding out of the table. The lock is held.
func (w *Window) kill() {
	if w.key != 0 {
		w.dev.Keys.remove(w.key)
		w.key = 0
	}
}

// release counts one window less on the region. The key is dead; the lock is held.
func (w *Window) release() {
	if w.mr != nil {
		w.mr.bound--
		w.mr = nil
	}
}

// region returns the region that a bind by q would give the window, or false if q may
// not bind it so. The lock is held.
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
	r := w.dev.Keys.Lookup(m.lkey) // the key is alive, as m is
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

// A bind has two halves. Between them its executor waits until no access through the
// key that died is in progress.

// BeginBind kills the key of the present binding, if the bind is allowed (ok). used
// says that there was a binding, so that accesses through its key may be in progress;
// own says that the window is a queue pair's, whose peer alone can have such accesses.
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

// EndBind enters the new binding and reports whether the bind was still allowed. The
// old key is dead, and no access through it is in progress.
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
	w.key, w.mr, w.used = b.Key, m, true
	return true
}

// Undo reverts a bind that was executed and is then reported as flushed.
func (w *Window) Undo(b *hw.Bind) {
	w.dev.bindMu.Lock()
	defer w.dev.bindMu.Unlock()
	if b.Len != 0 && w.key == b.Key {
		w.kill()
		w.release() // Deregister of the region waits
	}
}

// CheckBind returns an error if a bind must be refused at the post.
func (d *Device) CheckBind(b *hw.Bind) error {
	const op = "PostSend"
	if b == nil {
		return d.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a bind without its argument")
	}
	if w, ok := b.Window.(*Window); !ok || w == nil || w.dev != d {
		return d.Errorf(op, hw.InvalidHandle, hw.HandleRMR, "not a window of this device")
	}
	if m, ok := b.MR.(*MR); b.Len != 0 && (!ok || m == nil || m.dev != d) {
		return d.Errorf(op, hw.InvalidHandle, hw.HandleLMR, "not a region of this device")
	}
	if b.ZeroBased && !d.cfg.Attr.ZeroBased {
		return d.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "windows are addressed as their regions are")
	}
	return nil
}

// SpendBinds spends the keys of the binds among requests that a post has taken: see
// [Window.Spend].
func SpendBinds(wrs []hw.SendWR) {
	for i := range wrs {
		if b := wrs[i].Bind; wrs[i].Op == hw.OpBind {
			b.Window.(*Window).Spend(b.Key)
		}
	}
}
