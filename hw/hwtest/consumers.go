package hwtest

import (
	"runtime"
	"sync"
	"time"

	"godat/hw"
)

// consumers help a device from its opening until after its Close, as a program's
// consumers do that poll: for a while, and then not for a while.
type consumers struct {
	dev     hw.Progresser
	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

const (
	pollsInARow = 200
	pollPause   = time.Millisecond
)

// startConsumers starts n consumers of a device, if it lets consumers help.
func startConsumers(dev hw.Device, n int) *consumers {
	c := &consumers{stop: make(chan struct{})}
	if p, ok := dev.(hw.Progresser); ok {
		c.dev = p
		for range n {
			c.running.Go(c.run)
		}
	}
	return c
}

func (c *consumers) run() {
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for {
		for range pollsInARow {
			c.dev.Progress()
			runtime.Gosched()
		}
		select {
		case <-pause.C:
		case <-c.stop:
			return
		}
	}
}

// end stops the consumers. A second call does nothing.
func (c *consumers) end() {
	c.once.Do(func() { close(c.stop) })
	c.running.Wait()
}
