package delivery

import (
	"sync"
	"time"
)

// pump moves the listed events that found no room in a dispatcher's channel.
type pump struct {
	mu      sync.Mutex
	running bool
	task    sync.WaitGroup
}

// pumpInterval is how often the pump looks for room.
const pumpInterval = time.Millisecond

// sendListed moves listed events into the dispatcher's channel. A receiver does not say that it
// made room, so if there is none, a goroutine looks from time to time.
func (c *channel) sendListed() {
	if c.takeListed(&c.q.d.async) {
		return
	}
	p := &c.pump
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && !c.q.closed() {
		p.running = true
		p.task.Add(1)
		go c.runPump()
	}
}

// stopPump waits for the pump's goroutine. The dispatcher is closed, so no pump starts
// any more after stopPump has had mu.
func (c *channel) stopPump() {
	p := &c.pump
	p.mu.Lock()
	p.mu.Unlock() //nolint:staticcheck // a caller of sendListed that held it has started the pump
	p.task.Wait()
}

// runPump sends the listed events that found no room, until all are sent or the
// dispatcher is closed.
func (c *channel) runPump() {
	d, p := c.q.d, &c.pump
	defer p.task.Done()
	tick := time.NewTicker(pumpInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.takeListed(&d.async)
		case <-d.stop:
			return
		}
		p.mu.Lock()
		if d.async.count.Load() == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}
