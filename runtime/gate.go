package runtime

import (
	"errors"
	"sync"

	"godat/hw"
)

// gate is what each call that makes something on an adapter holds shared. Close holds it
// alone to shut it, so no such call is under way then, and none begins later.
type gate struct {
	sync.RWMutex
	closed bool          // guarded by the lock
	down   chan struct{} // closed when closed is set
}

// shut makes further calls of [IA.enter] fail. The caller holds the gate alone.
func (g *gate) shut() {
	if !g.closed {
		g.closed = true
		close(g.down)
	}
}

// orClosed returns the error of a call that makes several objects. If the adapter was
// closed meanwhile, that is why a handle was invalid, so it becomes the error of a
// closed adapter.
func (g *gate) orClosed(op string, err error) error {
	if isDone(g.down) && errors.Is(err, hw.ErrInvalidHandle) {
		return closedIA(op)
	}
	return err
}
