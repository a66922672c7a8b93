package runtime

import (
	"errors"

	"go.uber.org/zap"

	"godat/hw"
	"godat/hw/event"
)

// Close closes the adapter abruptly, with all that lives on it, in this order: service
// points; connection requests without an answer, which it rejects; endpoints, whose
// connections break and whose outstanding work is flushed; shared receive queues;
// dispatchers, whose waiters return with ABORT and whose channels are closed (those of
// Conns and Listeners stay open behind [event.Closed]); CNOs,
// whose waiters return with CNO_DEAD; windows and memory regions; protection zones; the
// device. The program keeps what it was given: the memory of a region until [mem.LMR.Free],
// and a buffer, of a pool or a connection, until it gives the buffer back.
//
// The program may close any of these at the same time: Close waits for it. A second
// Close waits for the first. The error is the device's. What could not be closed stays
// open, and so does the device; another Close tries again. Close waits for callbacks to
// return, so from a callback of a dispatcher, from an agent, or from a hook of a connection
// (ConnConfig.Established, Ended), it is INVALID_STATE. It
// answers to dat_ia_close with ABRUPT.
func (ia *IA) Close() error { return ia.close("runtime.IA.Close", false) }

// CloseGraceful closes the adapter if the program has closed all that was made on it.
// Otherwise the error is INVALID_STATE/IA_IN_USE, and nothing happens. A closed adapter
// is INVALID_HANDLE/IA; if its close failed, CloseGraceful tries once more. From a
// callback it is INVALID_STATE, as Close is. It answers to dat_ia_close with GRACEFUL.
func (ia *IA) CloseGraceful() error { return ia.close("runtime.IA.CloseGraceful", true) }

// close closes the adapter, unless that is to be graceful and something is open.
func (ia *IA) close(op string, graceful bool) error {
	if ia == nil || ia.isZero() {
		return closedIA(op)
	}
	if ia.lists.inUpcall() {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "called from a callback, for which it would wait: call it in a goroutine of its own")
	}
	if err := ia.refuseInHook(op); err != nil {
		return err
	}
	ia.gate.Lock()
	again := ia.gate.closed
	if graceful && !again {
		if err := ia.inUse(op); err != nil {
			ia.gate.Unlock()
			return err
		}
	}
	ia.gate.shut() // nothing new is made from here on
	ia.gate.Unlock()
	ia.closing.Lock()
	defer ia.closing.Unlock()
	switch {
	case ia.gone && graceful && again:
		return closedIA(op)
	case ia.gone:
		return nil
	}
	err := ia.closeObjects()
	// The completion queues and the device are closed only after everything that uses
	// them: an object that could not be closed needs them when Close is called again.
	if err == nil && ia.polling != nil {
		err = ia.polling.Close()
	}
	if err == nil {
		err = ia.dev.Close()
	}
	if err != nil {
		ia.log.Error("close", zap.Error(err))
		return hw.Errorf("runtime.IA.Close", hw.InternalError, hw.NoSubtype, "%w", err)
	}
	// Last, because the device may report errors until here.
	ia.async.close()
	ia.pool.release()
	ia.release()
	ia.gone = true
	ia.log.Info("closed")
	return nil
}

// inUse is an error that counts what is open, or nil if nothing is. The caller holds
// gate alone.
func (ia *IA) inUse(op string) error {
	l := &ia.lists
	l.mu.Lock()
	dispatchers, cnos := l.dispatchers.count(), l.cnos.count()
	l.mu.Unlock()
	endpoints, memory := ia.adapter.Len(), ia.domain.Stats()
	if endpoints+dispatchers+cnos+memory.Regions+memory.Windows+memory.Zones == 0 {
		return nil
	}
	return hw.Errorf(op, hw.InvalidState, hw.StateIAInUse,
		"%d endpoints, shared receive queues and service points, %d dispatchers, %d CNOs, %d regions, %d windows and %d zones are open: close these first, or Close, which closes them",
		endpoints, dispatchers, cnos, memory.Regions, memory.Windows, memory.Zones)
}

// closeObjects closes what was made on the adapter, as far as it can.
func (ia *IA) closeObjects() error {
	var errs []error
	if ia.adapter != nil { // nil when Open has failed half-way
		endpoints := ia.adapter.Endpoints()
		errs = append(errs, ia.adapter.Close())
		for _, e := range endpoints {
			if c, ok := e.Context().(*Conn); ok && errorOf(e.Status()) != nil { // it is closed
				c.end(event.Event{})
			}
		}
	}
	waitables := ia.lists.waitables()
	for _, w := range waitables {
		w.Abort()
	}
	// The aborts have woken every waiter. A callback may be such a waiter, so Close
	// waits for callbacks only from here on.
	for _, w := range waitables {
		errs = append(errs, w.Close())
	}
	if ia.domain != nil {
		errs = append(errs, ia.domain.Close())
	}
	return errors.Join(errs...)
}
