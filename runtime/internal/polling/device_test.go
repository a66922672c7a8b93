package polling

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// polled is a polled device without hardware: tests put completions into its queues. It
// gives a wake-up only where the contract promises one.
type polled struct {
	mu      sync.Mutex
	cond    sync.Cond
	queues  []*polledCQ
	turn    int
	armed   bool
	woken   bool  // by a completion or by Wake, since the last Wait returned
	armErr  error // what Arm fails with
	cqErr   error // what NewCQ fails with
	waiting bool

	polls, arms, waits atomic.Int64
}

type polledCQ struct {
	dev    *polled
	cfg    hw.CQConfig
	wcs    []hw.WC
	closed bool
}

func newPolled() *polled {
	d := new(polled)
	d.cond.L = &d.mu
	return d
}

func (d *polled) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cqErr != nil {
		return nil, d.cqErr
	}
	c := &polledCQ{dev: d, cfg: cfg}
	d.queues = append(d.queues, c)
	return c, nil
}

func (c *polledCQ) Depth() int { return c.cfg.Depth }

func (c *polledCQ) Close() error {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	c.closed = true
	for i, o := range c.dev.queues {
		if o == c {
			c.dev.queues = append(c.dev.queues[:i], c.dev.queues[i+1:]...)
		}
	}
	return nil
}

// complete puts completions into the queue.
func (c *polledCQ) complete(wcs ...hw.WC) {
	d := c.dev
	d.mu.Lock()
	for _, wc := range wcs {
		wc.CQ = c.cfg.Tag
		c.wcs = append(c.wcs, wc)
	}
	wake := d.armed
	if wake {
		d.armed, d.woken = false, true
	}
	d.mu.Unlock()
	if wake {
		d.cond.Broadcast()
	}
}

func (d *polled) Poll(wcs []hw.WC) (n int) {
	d.polls.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.queues {
		c := d.queues[(d.turn+i)%len(d.queues)]
		m := copy(wcs[n:], c.wcs)
		c.wcs = c.wcs[m:]
		n += m
	}
	d.turn++
	return n
}

func (d *polled) Arm() error {
	d.arms.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = true
	return d.armErr
}

func (d *polled) Wait() error {
	d.waits.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = true
	for !d.woken {
		d.cond.Wait()
	}
	d.waiting, d.woken = false, false
	return nil
}

func (d *polled) Wake() {
	d.mu.Lock()
	d.woken = true
	d.mu.Unlock()
	d.cond.Broadcast()
}

func (d *polled) asleep() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting && !d.woken
}

// collector takes what deliverers deliver, and checks that the completions of each
// queue come in order: their ids count up, queue by queue.
type collector struct {
	mu     sync.Mutex
	next   map[uint32]uint64 // by tag
	total  int
	inside map[uint32]bool
	wrong  []string
	reused bool // tags come back, while a deliverer may still leave the old queue
	pause  func()
	came   chan struct{} // one for each call
}

func newCollector() *collector {
	return &collector{next: make(map[uint32]uint64), inside: make(map[uint32]bool), came: make(chan struct{}, 1<<20)}
}

func (c *collector) Complete(wcs []hw.WC) {
	tag := wcs[0].CQ
	c.mu.Lock()
	if c.inside[tag] && !c.reused {
		c.wrong = append(c.wrong, "two goroutines complete one queue at once")
	}
	c.inside[tag] = true
	for _, wc := range wcs {
		if wc.CQ != tag {
			c.wrong = append(c.wrong, "completions of two queues in one batch")
		}
		if c.next[tag] != wc.ID {
			c.wrong = append(c.wrong, "out of order")
		}
		c.next[tag] = wc.ID + 1
		c.total++
	}
	c.mu.Unlock()
	if c.pause != nil {
		c.pause()
	}
	c.mu.Lock()
	c.inside[tag] = false
	c.mu.Unlock()
	c.came <- struct{}{}
}

func (c *collector) requireAll(t testing.TB, total int) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		n, wrong := c.total, c.wrong
		c.mu.Unlock()
		require.Empty(t, wrong)
		if n == total {
			return
		}
		require.Less(t, n, total, "a completion was delivered twice")
		select {
		case <-c.came:
		case <-deadline.C:
			require.Failf(t, "a wake-up was lost", "%d of %d completions came", n, total)
		}
	}
}

// asyncLog collects asynchronous events.
type asyncLog struct {
	mu     sync.Mutex
	events []hw.AsyncEvent
}

func (l *asyncLog) report(ev hw.AsyncEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

func (l *asyncLog) kinds() (kinds []hw.AsyncKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ev := range l.events {
		kinds = append(kinds, ev.Kind)
	}
	return kinds
}

// first returns the first event, which must exist.
func (l *asyncLog) first() hw.AsyncEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[0]
}
