package delivery

import (
	"godat/hw"
	"godat/internal/owner"
)

// Close frees the dispatcher; evd.Dispatcher.Close says when it is refused.
func (d *Dispatcher) Close() error {
	if d.InUpcall() {
		return &hw.Error{Op: "evd.Close", Type: hw.InvalidState, Text: "called from the dispatcher's own callback"}
	}
	if err := d.beginClose(); err != nil {
		return err
	}
	d.endClose()
	if d.calls != nil && !d.calls.stop() {
		return hw.Errorf("evd.Close", hw.InvalidState, hw.NoSubtype, "the callback of %v has not returned for %v: close again when it has", d.public, UpcallTime)
	}
	return nil
}

// OnExit sets what is called when a callback has panicked, or ended its goroutine. It is called before
// any event comes.
func (d *Dispatcher) OnExit(f func()) {
	if d.calls != nil {
		d.calls.onExit(f)
	}
}

// beginClose closes the dispatcher to further work, or returns why Close is refused.
func (d *Dispatcher) beginClose() error {
	const op = "evd.Close"
	d.feeds.mu.Lock() // nothing is attached meanwhile
	defer d.feeds.mu.Unlock()
	switch {
	case d.main.closed():
		return nil
	case d.feeds.total != 0:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDInUse, Text: "an endpoint, service point, adapter, over-committed dispatcher, route or one-shot uses it: close that first"}
	case d.main.consumer.turn.kind() == turnWaiter:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDWaiter}
	case !d.Main().refuse():
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDInUse, Text: "a post was taken whose completion is still to come"}
	}
	d.main.places.close() // Main is the queue in front, if there is one
	return nil
}

// Ending is the adapter's side of closing a dispatcher or a CNO.
type Ending interface {
	// Abort closes at once: it does not refuse, wakes all waiters, and does not
	// wait for upcalls.
	Abort()
	// InUpcall reports whether the calling goroutine is in an upcall of the object.
	InUpcall() bool
}

// Abort closes the dispatcher when its IA closes abruptly: a goroutine in Wait returns with
// ABORT. The queues still take events of outstanding operations; a channel is closed after
// the last of them.
func (d *Dispatcher) Abort() {
	if d == nil {
		return
	}
	d.feeds.mu.Lock()
	d.main.places.close()
	d.feeds.mu.Unlock()
	d.endClose()
}

// endClose wakes all waiters and shuts the queues. It runs once; a second closer
// waits for the first, unless the first calls it: by a Func that hears of the end.
func (d *Dispatcher) endClose() {
	me := owner.Goroutine()
	if d.closer.Load() == me {
		return
	}
	d.closing.Do(func() {
		d.closer.Store(me)
		defer d.closer.Store(0)
		d.onClose()
		close(d.stop)
		d.async.dropRequests()
		d.main.shut()
		if d.front != nil {
			d.front.shut()
		}
		d.routes.shut()
		d.main.channel.stopPump()
	})
}

// InUpcall reports whether the caller is inside this dispatcher's callback, where control
// calls that wait are INVALID_STATE.
func (d *Dispatcher) InUpcall() bool { return d.calls != nil && d.calls.inside() }
