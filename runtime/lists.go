package runtime

import (
	"io"
	"slices"
	"sync"

	"godat/evd"
	"godat/internal/delivery"
	"godat/internal/door"
)

// lists have the objects of an adapter that no other package lists.
type lists struct {
	mu          sync.Mutex
	dispatchers children[*evd.Dispatcher]
	freed       FreedCounts   // of the dispatchers that the list has dropped
	took        evd.Histogram // how long their requests took
	cnos        children[*evd.CNO]
	listeners   children[*Listener]
	contexts    sweep[any, any] // the values that the program attached to objects
}

// dropDispatcher keeps what a closed dispatcher counted. The caller holds mu.
func (l *lists) dropDispatcher(d *evd.Dispatcher) {
	l.freed.takeDispatcher(d)
	d.AddLatency(door.Key{}, &l.took)
}

// waitable is a dispatcher or a CNO, as IA.closeObjects sees it.
type waitable struct {
	delivery.Ending
	io.Closer
}

// waitables returns the dispatchers and then the CNOs, some of which may be closed.
func (l *lists) waitables() (all []waitable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.dispatchers.list() {
		all = append(all, waitable{wiring(d), d})
	}
	for _, c := range l.cnos.list() {
		all = append(all, waitable{c.Wiring(door.Key{}), c})
	}
	return all
}

// inUpcall reports whether the caller is inside a callback of a dispatcher of the
// adapter, or inside an agent of a CNO.
func (l *lists) inUpcall() bool {
	return slices.ContainsFunc(l.waitables(), waitable.InUpcall)
}

// wiring returns the part of a dispatcher that only the library's packages use; nil for
// a nil dispatcher.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }
