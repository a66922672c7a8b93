package runtime

import (
	"godat/evd"
	"godat/internal/delivery"
	"godat/internal/door"
)

// wiring returns the part of a dispatcher that only the library's packages use; nil for
// a nil dispatcher.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }
