package runtime

import (
	"errors"
	"io"
	"slices"

	"go.uber.org/zap"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
)

// Close closes the adapter abruptly, with all that lives on it, in this order:
// service points; connection requests without an answer, which are rejected to their
// peers; endpoints, whose connections break and whose work is flushed; shared receive
// queues; dispatchers, whose waiters return with ABORT and whose channels are closed;
// CNOs, whose waiters return with CNO_DEAD; windows and memory regions, whose memory
// is unmapped: slices of it fault from then on; protection zones; the device.
//
// The program may close any of these at the same time: Close waits for that. A second
// Close waits for the first. An error is the device's: what could not be closed, and
// the device, are left for another Close. From a callback of a dispatcher or an agent
// it is INVALID_STATE, since it waits for callbacks to return. It answers to
// dat_ia_close with ABRUPT.
func (ia *IA) Close() error {
	const op = "runtime.IA.Close"
	if ia == nil {
		return closedIA(op)
	}
	if ia.inUpcall() {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "called from a callback")
	}
	ia.gate.Lock()
	ia.shut()
	ia.gate.Unlock()
	return ia.tearDown()
}

// CloseGraceful closes the adapter if nothing made on it is left; otherwise it
// is INVALID_STATE/IA_IN_USE and nothing happens. A closed adapter is
// INVALID_HANDLE/IA; one whose close failed is tried once more. It answers to
// dat_ia_close with GRACEFUL.
func (ia *IA) CloseGraceful() error {
	const op = "runtime.IA.CloseGraceful"
	if ia == nil {
		return closedIA(op)
	}
	if ia.inUpcall() {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "called from a callback")
	}
	ia.gate.Lock()
	if !ia.closed {
		if err := ia.inUse(op); err != nil {
			ia.gate.Unlock()
			return err
		}
		ia.shut()
		ia.gate.Unlock()
		return ia.tearDown()
	}
	ia.gate.Unlock()
	if ia.isGone() {
		return closedIA(op)
	}
	return ia.tearDown()
}

// isGone reports whether nothing is left of the adapter.
func (ia *IA) isGone() bool {
	ia.closing.Lock()
	defer ia.closing.Unlock()
	return ia.gone
}

// inUse says what is left, if anything. gate is held alone.
func (ia *IA) inUse(op string) error {
	ia.mu.Lock()
	dispatchers, cnos := ia.dispatchers.count(), ia.cnos.count()
	ia.mu.Unlock()
	endpoints, memory := ia.adapter.Len(), ia.domain.Stats()
	if endpoints+dispatchers+cnos+memory.Regions+memory.Windows+memory.Zones == 0 {
		return nil
	}
	return hw.Errorf(op, hw.InvalidState, hw.StateIAInUse,
		"%d endpoints, shared receive queues and service points, %d dispatchers, %d CNOs, %d regions, %d windows and %d zones are open",
		endpoints, dispatchers, cnos, memory.Regions, memory.Windows, memory.Zones)
}

// tearDown ends everything. The adapter is closed: nothing new comes.
func (ia *IA) tearDown() error {
	ia.closing.Lock()
	defer ia.closing.Unlock()
	if ia.gone {
		return nil
	}
	err := ia.closeObjects()
	// Completion queues and the device go when nothing that is on them is left: what
	// could not be closed needs them when Close is tried once more.
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
	// Last: until here the device may report errors.
	ia.async.close()
	ia.pool.release()
	ia.release()
	ia.gone = true
	ia.log.Info("closed")
	return nil
}

// closeObjects closes what was made on the adapter, as far as it can.
func (ia *IA) closeObjects() error {
	var errs []error
	if ia.adapter != nil { // it is nil when Open fails half-way
		errs = append(errs, ia.adapter.Close())
	}
	waitables := ia.waitables()
	for _, w := range waitables {
		w.Abort()
	}
	// All are aborted by now, which has woken every waiter. A callback may be one of
	// these, so Close waits for callbacks only here.
	for _, w := range waitables {
		errs = append(errs, w.Close())
	}
	if ia.domain != nil {
		errs = append(errs, ia.domain.Close())
	}
	return errors.Join(errs...)
}

// inUpcall reports whether the caller is inside a callback of a dispatcher of
// this adapter, or an agent of a CNO.
func (ia *IA) inUpcall() bool {
	return slices.ContainsFunc(ia.waitables(), waitable.InUpcall)
}

// waitable is a dispatcher or a CNO, for closing it.
type waitable struct {
	delivery.Ending
	io.Closer
}

// waitables are the dispatchers, and then the CNOs, some of which may be closed.
func (ia *IA) waitables() (all []waitable) {
	ia.mu.Lock()
	defer ia.mu.Unlock()
	for _, d := range ia.dispatchers.list() {
		all = append(all, waitable{wiring(d), d})
	}
	for _, c := range ia.cnos.list() {
		all = append(all, waitable{c.Wiring(door.Key{}), c})
	}
	return all
}
