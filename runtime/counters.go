package runtime

import (
	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// Counters say what has happened on an adapter since it was opened, or since its
// counters were reset: DAT_IA_COUNTERS. Endpoints and dispatchers have counters of
// their own.
type Counters struct {
	ep.Counters                                 // endpoints, service points and connections
	Memory                        mem.Counters  // zones, regions and windows
	Dispatchers, DispatchersFreed uint64        // made, and closed again
	Async                         AsyncCounters // errors that the device has reported
}

// AsyncCounters count asynchronous errors, each time that the device reports one.
type AsyncCounters struct {
	Errors          uint64 // of all kinds
	Endpoints       uint64 // of these, errors of queue pairs
	Dispatchers     uint64 // of completion queues
	SharedReceivers uint64 // of shared receive queues
}

// Counters returns the adapter's counters. It answers to dat_ib_query_counters.
func (ia *IA) Counters() (Counters, error) { return ia.takeCounters("runtime.IA.Counters", false) }

// ResetCounters returns the counters, and sets them to 0.
func (ia *IA) ResetCounters() (Counters, error) {
	return ia.takeCounters("runtime.IA.ResetCounters", true)
}

func (ia *IA) takeCounters(op string, reset bool) (c Counters, err error) {
	if err := ia.enter(op); err != nil {
		return c, err
	}
	defer ia.gate.RUnlock()
	if reset {
		c.Counters = ia.adapter.ResetCounters()
	} else {
		c.Counters = ia.adapter.Counters()
	}
	c.Memory, c.Async = ia.domain.Counters(reset), ia.async.takeCounters(reset)
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	c.Dispatchers, c.DispatchersFreed = ia.lists.dispatchers.takeCounts(reset)
	return c, nil
}

// takeCounts says how many children were made and how many of them were closed since
// the last reset.
func (c *children[T]) takeCounts(reset bool) (made, freed uint64) {
	allMade, allFreed := c.counts()
	made, freed = allMade-c.madeBefore, allFreed-c.freedBefore
	if reset {
		c.madeBefore, c.freedBefore = allMade, allFreed
	}
	return made, freed
}

// count counts an error. mu is held.
func (c *AsyncCounters) count(kind hw.AsyncKind) {
	c.Errors++
	switch kind {
	case hw.AsyncQPError:
		c.Endpoints++
	case hw.AsyncCQOverrun:
		c.Dispatchers++
	case hw.AsyncSRQError:
		c.SharedReceivers++
	default:
	}
}

func (a *asyncErrors) takeCounters(reset bool) AsyncCounters {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.counted
	c.minus(a.before)
	if reset {
		a.before = a.counted
	}
	return c
}

// minus takes an earlier count off.
func (c *AsyncCounters) minus(before AsyncCounters) {
	c.Errors -= before.Errors
	c.Endpoints -= before.Endpoints
	c.Dispatchers -= before.Dispatchers
	c.SharedReceivers -= before.SharedReceivers
}

// allCounters counts since the adapter was opened.
func (a *asyncErrors) allCounters() AsyncCounters {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counted
}
