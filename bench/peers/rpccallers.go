package main

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/host"
)

// service is what calls are made of.
type service struct {
	name string
	most int // bytes of a request, where one caller alone is measured; 0 is no limit
	open func(size, callers int) (site, error)
}

// site is a server and its clients, in this process.
type site interface {
	// call makes a call and waits for its answer. Each caller has one goroutine.
	call(caller int) error
	close() error
}

// The requests have equal bytes, and the answer of each says what the server saw of it.
func newBody(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// seen is the answer to a request.
func seen(body []byte) uint64 {
	if len(body) == 0 {
		return 0
	}
	return uint64(len(body))<<16 | uint64(body[0])<<8 | uint64(body[len(body)-1])
}

var errAnswer = errors.New("the answer is another request's, or none")

// newHistogram is one of nanoseconds, with two digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(10*time.Minute), 2) }

// caller is a goroutine that calls.
type caller struct {
	number int
	took   *hdrhistogram.Histogram
	err    error
}

// run makes calls until the time is over, at least one.
func (c *caller) run(s site, until time.Time) {
	for now := time.Now(); ; {
		if c.err = s.call(c.number); c.err != nil {
			return
		}
		next := time.Now()
		if c.err = c.took.RecordValue(int64(next.Sub(now))); c.err != nil || next.After(until) {
			return
		}
		now = next
	}
}

// stalled is how long a call may take; then its service is closed.
const stalled = 20 * time.Second

// turn lets all callers call for so long.
func (c *contender) turn(callers int, duration time.Duration, counts bool) error {
	runtime.GC()                                                        // no service pays for another's garbage
	guard := time.AfterFunc(duration+stalled, func() { _ = c.close() }) // so its calls fail
	defer guard.Stop()
	list := make([]caller, callers)
	used, known := host.ProcessorTime()
	began := time.Now()
	var all sync.WaitGroup
	for i := range list {
		list[i] = caller{number: i, took: newHistogram()}
		all.Go(func() { list[i].run(c.site, began.Add(duration)) })
	}
	all.Wait()
	wall := time.Since(began)
	now, _ := host.ProcessorTime()
	took := newHistogram()
	for i := range list {
		if list[i].err != nil {
			return list[i].err
		}
		took.Merge(list[i].took)
	}
	if !counts {
		return nil
	}
	n := float64(took.TotalCount())
	c.rate = append(c.rate, n/wall.Seconds())
	c.p50 = append(c.p50, float64(took.ValueAtQuantile(50)))
	if known {
		c.processor = append(c.processor, float64(now-used)/n)
	} else {
		c.processor = append(c.processor, -1)
	}
	c.all.Merge(took)
	return nil
}
