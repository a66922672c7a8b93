package ep

import (
	"godat/evd"
	"godat/internal/delivery"
	"godat/internal/door"
)

// wiring is what is behind a dispatcher; nil behind none.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }
