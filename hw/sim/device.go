package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"godat/hw"
)

// The limits of a simulated device.
const (
	maxDepth    = 4096
	maxCQDepth  = 1 << 18
	maxSegments = 8
	maxReads    = 16
	maxMessage  = 8 << 20
	maxRDMA     = 64 << 20
	maxPrivate  = 196
)

// Device is a device of a [Provider].
type Device struct {
	// Immutable.
	sim    *Provider
	name   string
	async  func(hw.AsyncEvent)
	waiter *waiter
	wake   chan struct{} // wakes the engine
	done   chan struct{} // closed when the engine's goroutine has ended

	queues queues
	calls  calls

	// Guarded by sim.mu.
	rng       *rand.Rand
	steps     uint64
	runnable  []*queuePair // queue pairs with work, in the order of their turns
	timed     []*queuePair // queue pairs with a deadline
	arrivals  []*request   // requests that no listener of this device got yet
	offered   []*request   // requests that a listener of this device got and did not answer
	asyncs    []hw.AsyncEvent
	lowQueues []*sharedQueue // shared queues whose OnLow the engine must call
	children  int
	closed    bool
	unbusy    sync.Cond // signals that no copy of a dead region is under way
}

// Attr implements [hw.Device].
func (d *Device) Attr() hw.Attr {
	return hw.Attr{
		Provider: d.sim.cfg.Name,
		Device:   d.name,
		Address:  d.name,
		Vendor:   "godat",
		Hardware: [2]int{1, 0},
		Firmware: [2]int{1, 0},

		Ops: d.sim.cfg.Ops,

		MaxQPs:   math.MaxInt32,
		MaxMRs:   math.MaxInt32,
		MaxZones: math.MaxInt32,
		MaxCQs:   math.MaxInt32,

		MaxSRQs:        math.MaxInt32,
		MaxSRQDepth:    maxDepth,
		MaxSRQSegments: maxSegments,

		MaxDepth:        maxDepth,
		MaxCQDepth:      maxCQDepth,
		MaxSendSegments: maxSegments,
		MaxRecvSegments: maxSegments,
		MaxReadSegments: maxSegments,
		MaxReadsIn:      maxReads,
		MaxReadsOut:     maxReads,
		MaxMessage:      maxMessage,
		MaxRDMA:         maxRDMA,
		MaxMR:           math.MaxInt32,
		MaxPrivate:      maxPrivate,
		Alignment:       64,
		NotReadyWait:    !d.sim.cfg.NoNotReadyWait,
	}
}

// NewZone implements [hw.Device].
func (d *Device) NewZone() (hw.Zone, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.closed {
		return nil, hw.Errorf("sim.NewZone", hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	d.children++
	return &zone{dev: d}, nil
}

// Close implements [hw.Device]. It refuses the requests that are still unanswered, and
// waits for the engine's goroutine to end.
func (d *Device) Close() error {
	const op = "sim.Close"
	d.sim.mu.Lock()
	if d.closed || d.children > 0 {
		defer d.sim.mu.Unlock()
		if d.closed {
			return hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "closed twice")
		}
		return hw.Errorf(op, hw.InvalidState, hw.StateIAInUse, "%d objects are open", d.children)
	}
	d.closed = true
	for len(d.offered) > 0 {
		d.offered[0].refuse(hw.ReasonRejected, "the peer's device closed", nil)
	}
	if d.sim.names[d.name]--; d.sim.names[d.name] == 0 {
		delete(d.sim.names, d.name)
	}
	d.sim.mu.Unlock()
	d.wakeEngine()
	<-d.done
	d.waiter.close()
	return nil
}

// violate records a breach of the contract. It takes sim.mu.
func (d *Device) violate(format string, args ...any) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	d.violateLocked(format, args...)
}

func (d *Device) violateLocked(format string, args ...any) {
	if s := d.sim; len(s.violations) < violationsKept {
		s.violations = append(s.violations, d.name+": "+fmt.Sprintf(format, args...))
	}
}
