//go:build linux && cgo

package ibv

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// counters are the work of a device's data path since the device was opened.
type counters struct {
	Posts     uint64 // calls into C that posted requests
	Polls     uint64 // calls into C that polled
	Posted    uint64 // requests posted
	Polled    uint64 // completions that Poll returned
	Doorbells uint64 // doorbells rung for posted sends
}

// countersOf returns the counters of a device of this package, which may be wrapped;
// for any other device it returns false. The counters are not all read at one instant.
func countersOf(dev hw.Device) (counters, bool) {
	for {
		if d, ok := dev.(interface{ opened() *device }); ok {
			c := d.opened().count()
			return counters{uint64(c.posts), uint64(c.polls), uint64(c.posted), uint64(c.polled), uint64(c.doorbells)}, true
		}
		u, ok := dev.(interface{ Unwrap() hw.Device })
		if !ok {
			return counters{}, false
		}
		dev = u.Unwrap()
	}
}

// opened is the device behind the types that public gives.
func (d *device) opened() *device { return d }

func TestCountersOfAnotherDeviceAreNotFound(t *testing.T) {
	_, ok := countersOf(nil)
	assert.False(t, ok)
}
