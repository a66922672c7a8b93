// Package load offers messages to a lane and measures what becomes of them: how long
// each took since the time at which it was to be posted, and what that cost.
//
// Latency counts from the intended time. A consumer that stalls delays the posts behind
// it, and a measurement from the actual post would leave out just the messages that
// waited longest (coordinated omission).
package load

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/host"
	"godat/bench/lane"
)

// Load is what is offered in one run.
type Load struct {
	Rate     Rate
	Depth    int           // messages outstanding at most
	Duration time.Duration // of the run
}

// Result is what one run has measured.
type Result struct {
	Latency *hdrhistogram.Histogram // in nanoseconds, of each message from intended post to take
	Lag     *hdrhistogram.Histogram // in nanoseconds, of each post behind its intended time; the benchmark's own, in open loop
	Count   int64                   // messages taken
	Took    time.Duration           // from the first intended post to the last take
	// Processor is the processor time of the process without Pacing; negative if unknown.
	Processor time.Duration
	Pacing    time.Duration // what the poster's wait for intended times took
	Allocs    int64         // by the whole process; negative if unknown
	// Saturated says that messages were offered faster than they were taken, so that
	// latencies say no more than how long the run was.
	Saturated bool
	// Median and Mean are what another program tells of its messages. Latency and Lag are
	// nil then.
	Median, Mean time.Duration
}

// Refusal is an error that refuses one row of a report, and says why.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// The reasons to refuse a load.
var (
	ErrOneProcessor = errors.New("the poster spins until each intended time, and needs a processor beside the consumer's (GOMAXPROCS is 1)")
	ErrPostWaits    = errors.New("its post waits for a consumer, so that one goroutine can't post and take")
)

// Refuse says why a lane can't be measured under a load; nil if it can.
func Refuse(l lane.Lane, ld Load) error {
	if blocker, ok := l.(lane.Blocker); ok && ld.Rate == Closed && blocker.PostBlocks(ld.Depth) {
		return ErrPostWaits
	}
	if ld.Rate.Open() && runtime.GOMAXPROCS(0) == 1 {
		return ErrOneProcessor
	}
	return nil
}

// Driver runs loads on one lane.
type Driver struct {
	lane   lane.Lane
	posted int64 // by all runs
	pace   pacer
	yield  func() // lets others run while there is no room for another message
	base   time.Time
	due    []atomic.Int64 // by slot: when its message was to be posted, since base
}

// pacer waits until a time since base, and returns how often it looked at the clock.
type pacer func(base time.Time, until time.Duration) (looks int64)

// NewDriver makes a driver of a lane.
func NewDriver(l lane.Lane) *Driver {
	return &Driver{lane: l, pace: spin, yield: runtime.Gosched, due: make([]atomic.Int64, l.Slots()), base: time.Now()}
}

// spin keeps the processor: a timer would be late by more than what is measured.
func spin(base time.Time, until time.Duration) (looks int64) {
	for time.Since(base) < until {
		looks++
	}
	return looks
}

// run is the state of one run.
type run struct {
	*Driver
	Load
	latency, lag *hdrhistogram.Histogram

	first int64 // the number of the first message, among all of the driver
	start time.Duration
	end   time.Duration // no message is to be posted later
	// last is the number of messages of the run, once that is known: before the last one
	// is posted.
	last atomic.Int64

	// Of the poster.
	sent  int64
	looks int64
	err   error

	// Of the consumer.
	got int64
	// taken is got, for the poster.
	taken atomic.Int64
	at    time.Duration // of the last take
}

const unknown = 1<<63 - 1

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 2)
}

// Run offers the load, and returns when all messages have been taken. The load must not
// be one that Refuse refuses.
func (d *Driver) Run(ld Load) (Result, error) {
	r := &run{Driver: d, Load: ld, latency: newHistogram(), lag: newHistogram(), first: d.posted}
	r.last.Store(unknown)
	runtime.GC() // no lane pays for another's garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, known := host.ProcessorTime()
	r.start = time.Since(d.base)
	r.end = r.start + ld.Duration
	err := r.play()
	res := Result{Latency: r.latency, Lag: r.lag, Count: r.got, Took: r.at - r.start, Processor: -1}
	if now, _ := host.ProcessorTime(); known {
		res.Pacing = time.Duration(float64(r.looks) * lookCost())
		res.Processor = max(0, now-used-res.Pacing)
	}
	runtime.ReadMemStats(&after)
	res.Allocs = int64(after.Mallocs - before.Mallocs)
	res.Saturated = ld.Rate.Open() && float64(res.Count) < 0.95*float64(ld.Rate)*res.Took.Seconds()
	d.posted += r.sent
	return res, err
}

func (r *run) play() error {
	if r.Rate == Closed {
		for range r.Depth {
			if err := r.post(time.Since(r.base)); err != nil {
				return err
			}
		}
		return errors.Join(r.lane.Take(r.tookClosed), r.err)
	}
	done := make(chan struct{})
	go r.offer(done)
	err := r.lane.Take(r.took)
	<-done
	return errors.Join(err, r.err)
}

// post sends the next message, which was to be posted at due.
func (r *run) post(due time.Duration) error {
	slot := int((r.first + r.sent) % int64(len(r.due)))
	r.due[slot].Store(int64(due))
	r.sent++
	return r.lane.Post(slot)
}

// offer posts messages until the run's end.
func (r *run) offer(done chan<- struct{}) {
	defer close(done)
	for r.last.Load() == unknown && r.err == nil {
		due, final := r.next()
		if final {
			r.last.Store(r.sent + 1)
		}
		if r.err = r.post(due); r.err != nil {
			panic(r.err) // the consumer waits for a message that does not come
		}
		if r.Rate.Open() {
			// A program that posts one message after the other would wait for its next
			// reason to post, and so let its processor go.
			runtime.Gosched()
		}
	}
}

// next waits until a message may be posted, and returns when that was to be. final says
// that no message follows.
func (r *run) next() (due time.Duration, final bool) {
	if r.Rate.Open() {
		due = r.start + r.Rate.intended(r.sent)
		final = r.start+r.Rate.intended(r.sent+1) >= r.end
		r.looks += r.pace(r.base, due)
	}
	for r.sent-r.taken.Load() >= int64(r.Depth) {
		r.yield()
	}
	now := time.Since(r.base)
	if !r.Rate.Open() {
		return now, now > r.end
	}
	_ = r.lag.RecordValue(int64(now - due))
	// An overloaded lane would be offered the rest for long after the end.
	return due, final || now > r.end+r.Duration
}

// took is called for each message that the consumer takes.
func (r *run) took(slot int) (more bool) {
	r.record(slot)
	r.taken.Store(r.got)
	return r.got != r.last.Load()
}

// tookClosed also posts the next message.
func (r *run) tookClosed(slot int) (more bool) {
	r.record(slot)
	if now := time.Since(r.base); now < r.end {
		if r.err = r.post(now); r.err != nil {
			return false
		}
	}
	return r.got != r.sent
}

func (r *run) record(slot int) {
	r.at = time.Since(r.base)
	_ = r.latency.RecordValue(max(1, int64(r.at)-r.due[slot].Load()))
	r.got++
}
