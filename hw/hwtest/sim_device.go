package hwtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"godat/hw"
)

// The limits of a simulated device.
const (
	simMaxDepth    = 4096
	simMaxCQDepth  = 1 << 18
	simMaxSegments = 8
	simMaxReads    = 16
	simMaxMessage  = 8 << 20
	simMaxRDMA     = 64 << 20
	simMaxPrivate  = 196
)

// SimDevice is a device of a [Sim]. Beside the contract's methods it has some
// for tests, which any goroutine may call.
type SimDevice struct {
	// Immutable.
	sim    *Sim
	name   string
	async  func(hw.AsyncEvent)
	waiter *simWaiter
	kick   chan struct{} // tells an engine that sleeps to look again
	done   chan struct{} // closed when the engine's goroutine has ended

	queues simQueues

	stepping sync.Mutex // manual steps are made one at a time

	// Guarded by sim.mu.
	rng        *rand.Rand
	steps      uint64
	first      *simQP // the run queue: queue pairs with something to do
	last       *simQP
	timed      []*simQP      // queue pairs with a deadline
	arrivals   []*simRequest // on their way to a listener of this device
	offered    []*simRequest // handed to a listener of this device, unanswered
	asyncs     []hw.AsyncEvent
	lows       []*simSRQ // to be told of
	children   int
	overruns   int
	violations []string
	closed     bool
	unbusy     sync.Cond // a region of this device is no longer being copied
}

// Attr implements [hw.Device].
func (d *SimDevice) Attr() hw.Attr {
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
		MaxSRQDepth:    simMaxDepth,
		MaxSRQSegments: simMaxSegments,

		MaxDepth:        simMaxDepth,
		MaxCQDepth:      simMaxCQDepth,
		MaxSendSegments: simMaxSegments,
		MaxRecvSegments: simMaxSegments,
		MaxReadSegments: simMaxSegments,
		MaxReadsIn:      simMaxReads,
		MaxReadsOut:     simMaxReads,
		MaxMessage:      simMaxMessage,
		MaxRDMA:         simMaxRDMA,
		MaxMR:           math.MaxInt32,
		MaxPrivate:      simMaxPrivate,
		Alignment:       64,
		NotReadyWait:    !d.sim.cfg.NoNotReadyWait,
	}
}

// NewZone implements [hw.Device].
func (d *SimDevice) NewZone() (hw.Zone, error) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if d.closed {
		return nil, hw.Errorf("sim.NewZone", hw.InvalidHandle, hw.HandleIA, "the device is closed")
	}
	d.children++
	return &simZone{dev: d}, nil
}

// Close implements [hw.Device]. It ends the engine.
func (d *SimDevice) Close() error {
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

// LosePeer cuts the connection of qp, as if its peer had vanished: from now on
// nothing passes between the two. Each end notices after LossSteps of its own
// engine: what is outstanding fails with StatusTransport, the rest is flushed,
// and Down(ReasonBroken) is told. It fails when qp is not connected.
func (d *SimDevice) LosePeer(qp hw.QP) error {
	for {
		u, ok := qp.(interface{ Unwrap() hw.QP })
		if !ok {
			break
		}
		qp = u.Unwrap()
	}
	q, _ := qp.(*simQP)
	if q == nil || q.dev != d {
		return hw.Errorf("sim.LosePeer", hw.InvalidHandle, hw.HandleEP, "not a queue pair of this device")
	}
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if q.state != simUp || q.peer == nil {
		return hw.Errorf("sim.LosePeer", hw.InvalidState, hw.StateEPUnconnected, "nothing to lose")
	}
	q.peer.lose()
	q.lose()
	return nil
}

// Steps is how many steps the device's engine has made.
func (d *SimDevice) Steps() uint64 {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.steps
}

// Overruns is how many completions were lost because their queue was full.
func (d *SimDevice) Overruns() int {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.overruns
}

// Violations lists what the device's user did against the contract: calls on a
// queue pair from two goroutines at once, posts after Break, a second Break,
// more outstanding than the depth, two pollers.
func (d *SimDevice) Violations() []string {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return append([]string(nil), d.violations...)
}

// simViolationsKept bounds the list, for a user that does the same wrong thing
// for ever.
const simViolationsKept = 64

// violate notes a breach of the contract; sim.mu is not held.
func (d *SimDevice) violate(format string, args ...any) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	d.violateLocked(format, args...)
}

func (d *SimDevice) violateLocked(format string, args ...any) {
	if len(d.violations) < simViolationsKept {
		d.violations = append(d.violations, fmt.Sprintf(format, args...))
	}
}
