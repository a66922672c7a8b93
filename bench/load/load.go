// Package load offers messages to a lane and measures what becomes of them: how long
// each took since the time at which it was to be posted, and what that cost.
//
// Latency counts from the intended time. A consumer that stalls delays the posts behind
// it, and a measurement from the actual post would leave out just the messages that
// waited longest (coordinated omission).
package load

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/host"
	"godat/bench/lane"
)

// Load is what is offered in one run.
type Load struct {
	Rate     Rate          // of all producers together
	Depth    int           // messages outstanding at most; each producer has an equal part
	Duration time.Duration // of the run
}

// Result is what one run has measured.
type Result struct {
	Latency *hdrhistogram.Histogram // in nanoseconds, of each message from intended post to take
	Count   int64                   // messages taken
	Took    time.Duration           // from the first intended post to the last take
	// Processor is the processor time of the process without Waits; negative if unknown.
	Processor time.Duration
	Waits     time.Duration // processor time of the producers' threads while they wait for intended times
	Allocs    int64         // by the whole process; negative if unknown
	// Saturated says that messages were offered faster than they were taken, so that
	// latencies say no more than how long the run was.
	Saturated bool
}

// Refusal is an error that refuses one row of a report, and says why.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// The reasons to refuse a load.
var (
	ErrProcessors = errors.New("each producer spins until its intended times, and needs a processor beside the consumer's: GOMAXPROCS is not above the number of producers")
	ErrPostWaits  = errors.New("its post waits for a consumer, so that one goroutine can't post and take")
	ErrProducers  = errors.New("in closed loop the consumer posts, and is the only producer")
	ErrDepth      = errors.New("there are more producers than messages outstanding")
)

// shortWait is what is too short to be timed: the system takes a part of a microsecond to
// tell a thread's processor time.
const shortWait = 5 * time.Microsecond

// timed reports whether the waits of so many producers can be timed.
func (ld Load) timed(producers int) bool {
	_, known := host.ThreadTime()
	return known && ld.Rate.Open() && ld.Rate.intended(int64(producers)) >= shortWait
}

// Driver runs loads on one lane, which it closes.
type Driver struct {
	lane   lane.Lane
	close  func() error // closes the lane; further calls only return the same
	broken error        // why a post of an earlier run failed: the lane is closed
	posted []int64      // by all runs, by producer
	slots  int          // of each producer
	pace   pacer
	yield  func() // lets others run while there is no room for another message
	base   time.Time
	due    []atomic.Int64 // by slot: when its message was to be posted, since base
}

// pacer waits until a time since base.
type pacer func(base time.Time, until time.Duration)

// NewDriver makes a driver of a lane that was made for so many producers.
func NewDriver(l lane.Lane, producers int) *Driver {
	return &Driver{
		lane: l, close: sync.OnceValue(l.Close), pace: spin, yield: runtime.Gosched, base: time.Now(),
		posted: make([]int64, producers), slots: l.Slots() / producers, due: make([]atomic.Int64, l.Slots()),
	}
}

// spin keeps the processor: a timer would be late by more than what is measured.
func spin(base time.Time, until time.Duration) {
	for time.Since(base) < until {
	}
}

// Close closes the lane.
func (d *Driver) Close() error { return d.close() }

// Loop is the mode whose loop took the messages; empty if the lane is none of the library's, or took none.
func (d *Driver) Loop() string {
	if t, ok := d.lane.(lane.Teller); ok {
		return t.Loop()
	}
	return ""
}

// Refuse says why the lane can't be measured under a load; nil if it can.
func (d *Driver) Refuse(ld Load) error {
	blocker, blocks := d.lane.(lane.Blocker)
	producers := len(d.posted)
	switch {
	case d.broken != nil:
		return d.broken
	case ld.Rate == Closed && producers > 1:
		return ErrProducers
	case ld.Rate == Closed && blocks && blocker.PostBlocks(ld.Depth):
		return ErrPostWaits
	case ld.Depth < producers:
		return ErrDepth
	case ld.Rate.Open() && runtime.GOMAXPROCS(0) <= producers:
		return ErrProcessors
	}
	return nil
}

// run is the state of one run.
type run struct {
	*Driver
	Load
	producers []*producer
	start     time.Duration
	end       time.Duration // no message is to be posted later
	timed     bool          // the processor time of the producers' waits is measured

	// A producer adds its messages to total, and then takes itself off posting, before it
	// posts the last of them. So the consumer knows the run's last message when it comes.
	posting atomic.Int64 // producers that don't know yet how many messages they post
	total   atomic.Int64
	failed  atomic.Bool // no more is posted or taken
	refused atomic.Pointer[Refusal]

	// Of the consumer.
	latency *hdrhistogram.Histogram
	got     int64
	at      time.Duration // of the last take
}

const digits = 2

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), digits)
}

// Width is how far below a latency that a histogram tells the true one may lie, in
// nanoseconds: the histogram has 256 entries of 1 ns, and then 128 for each power of two.
func Width(ns float64) float64 {
	_, exponent := math.Frexp(ns) // ns is below its power of two
	return math.Ldexp(1, max(0, exponent-8))
}

// Run offers the load, and returns when all messages have been taken. The load must not
// be one that Refuse refuses. A post that fails is a Refusal of this run and of all that
// follow, because the consumer waits for a message that does not come, and only the end
// of the lane ends that.
func (d *Driver) Run(ld Load) (Result, error) {
	if d.broken != nil {
		return Result{}, d.broken
	}
	r := &run{Driver: d, Load: ld, latency: newHistogram(), timed: ld.timed(len(d.posted))}
	for i := range d.posted {
		r.producers = append(r.producers, newProducer(r, i))
	}
	r.posting.Store(int64(len(r.producers)))
	runtime.GC() // no lane pays for another's garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, known := host.ProcessorTime()
	r.start = time.Since(d.base)
	r.end = r.start + ld.Duration
	err := r.play()
	now, _ := host.ProcessorTime()
	runtime.ReadMemStats(&after)
	res := r.result()
	if known && (r.timed || !r.Rate.Open()) {
		res.Processor = max(0, now-used-res.Waits)
	}
	res.Allocs = int64(after.Mallocs - before.Mallocs)
	return res, err
}

// result is what the run has measured itself.
func (r *run) result() Result {
	res := Result{Latency: r.latency, Count: r.got, Took: r.at - r.start, Processor: -1}
	for i, p := range r.producers {
		res.Waits += p.waits
		r.posted[i] += p.sent
	}
	res.Saturated = r.Rate.Open() && float64(res.Count) < 0.95*float64(r.Rate)*res.Took.Seconds()
	return res
}

func (r *run) play() error {
	var err error
	if r.Rate == Closed {
		err = r.playClosed(r.producers[0])
	} else {
		for _, p := range r.producers {
			go p.offer()
		}
		if err = r.lane.Take(r.took); err != nil {
			r.failed.Store(true)
		}
		for _, p := range r.producers {
			<-p.done
		}
	}
	if why := r.refused.Load(); why != nil {
		r.broken = *why
		return r.broken
	}
	return err
}

// playClosed posts the first messages; the consumer posts the others.
func (r *run) playClosed(p *producer) error {
	for range r.Depth {
		if !p.post(time.Since(r.base)) {
			return nil
		}
	}
	return r.lane.Take(r.tookClosed)
}

// refuse notes that a post failed. The first failure is the reason; those of other
// producers may follow from the end of the lane.
func (r *run) refuse(why error) {
	refusal := Refusal("a post failed: " + why.Error())
	r.refused.CompareAndSwap(nil, &refusal)
	r.failed.Store(true)
}

// took is called for each message that the consumer takes.
func (r *run) took(slot int) (more bool) {
	r.record(slot)
	p := r.producers[slot/r.slots]
	p.taken.Store(p.taken.Load() + 1) // nothing else writes it
	return r.posting.Load() > 0 || r.got != r.total.Load()
}

// tookClosed also posts the next message.
func (r *run) tookClosed(slot int) (more bool) {
	r.record(slot)
	p := r.producers[0]
	if now := time.Since(r.base); now < r.end {
		if !p.post(now) {
			return false
		}
	}
	return r.got != p.sent
}

func (r *run) record(slot int) {
	r.at = time.Since(r.base)
	_ = r.latency.RecordValue(max(1, int64(r.at)-r.due[slot].Load()))
	r.got++
}
