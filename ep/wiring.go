package ep

import (
	"godat/evd"
	"godat/internal/delivery"
	"godat/internal/door"
)

// wiring returns the internal dispatcher behind d; nil for a nil d.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }
