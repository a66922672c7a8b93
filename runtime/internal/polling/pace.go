package polling

import (
	"math/bits"
	"math/rand/v2"
	"time"

	"godat/hw"
	"godat/internal/release"
)

// pace decides for what polls a device, a thread or the back-stop, whether it polls an empty
// device again or sleeps until the device wakes it. It is the only one that decides so for
// the device.
//
// A sleep has a price: the device is armed, polled and waited for, and something is woken. A
// poll that finds something before so much time has gone into polls saves a sleep; polls in vain
// for that time cost as much as one. Time in which others ran between two polls costs nothing, so
// the pace counts polls, of which it knows what each takes. It remembers which of the last gaps
// between completions were short: they ended before the polls had cost a sleep. It polls on while
// two thirds of them were, and behind each gap in which that was worth it, and for no longer than
// the price. Then polls take less than the sleeps that they save, if a short gap takes half the
// price; and no mix of gaps costs much more than twice what a decision made in hindsight could.
//
// After a sleep a gap is known only in part, since nobody knows how long the wake-up took. So
// a gap that may have been short is not counted, and now and then, in one gap of probeEvery, the
// pace polls on, to see.
//
// Of two ends that wait for each other, each may find long gaps only because the other sleeps. So one
// look of longEvery goes on for as long as its peer takes to wake up, and if it ends well, the pace
// polls on in the gaps behind it. The peer, which is answered at once then, finds short gaps when it looks.
//
// Clocks are read around empty polls alone: while every poll finds something, none is read.
// The goroutine or thread that polls owns the pace.
type pace struct {
	rounds int           // how many empty polls, in place of what the gaps say; 0: the gaps say it
	price  time.Duration // of a sleep
	each   time.Duration // of an empty poll, and the yield behind it if there is one
	recent uint16        // for each of the last gaps, the last in bit 0: it was short
	worth  bool          // the pace polled on in the last gap, and did not sleep
	probe  int           // in so many gaps the pace polls on, to see
	probes int           // how often it has
	long   int           // in so many gaps it polls on for longer, unless that is in vain once

	since time.Time // when the device was found empty; zero while the last poll found something
	empty int       // polls since
	told  int       // of these, those that are counted
	slept bool      // since then
	spins bool      // since then, without a sleep
	tried bool      // it has polled on in this gap
}

const (
	// mostGaps is how many of recent's gaps must have been short; at first none was.
	mostGaps = 11
	// probeEvery makes polls in vain a sixteenth of what sleeps cost, where gaps are long.
	probeEvery = 16
	// unsure is a gap that was long even if the wake-up took long, in prices.
	unsure = 16
	// longEvery, longGaps and longPrice: one look of so many is long. It polls on in so many gaps at most,
	// in which the peer looks itself, and for so many prices in each.
	longEvery = 64
	longGaps  = 2 * probeEvery
	longPrice = 4

	// toldEvery is how many polls of a gap are counted at once, before it ends.
	toldEvery = 1024

	// leastPrice is what it costs to put a processor to sleep and to wake it, even if its waker
	// found it awake when the price was measured.
	leastPrice = 10 * time.Microsecond
	mostPrice  = 50 * time.Microsecond // a price measured while others had the processors
	leastEach  = 50 * time.Nanosecond
	mostEach   = 500 * time.Nanosecond // unless others had the processors
)

// newPace returns the pace for a number of rounds: 0 leaves it to the gaps, less than 0
// means to sleep at once.
func newPace(rounds int) pace { return pace{rounds: rounds, price: leastPrice, each: leastEach} }

// found says that a poll has found n completions.
func (p *pace) found(n int, c *counts) {
	short, known := p.ended(n, c)
	if !known {
		return
	}
	p.recent <<= 1
	if short {
		p.recent |= 1
	}
}

// ended reports whether the gap that ends with n completions was short.
func (p *pace) ended(n int, c *counts) (short, known bool) {
	if p.since.IsZero() {
		return true, true
	}
	gap := time.Since(p.since)
	p.since = time.Time{}
	p.count(c)
	p.spins = false
	p.worth = !p.slept && p.tried && p.spent() < p.price
	switch {
	case !p.slept:
		return p.worth, true
	case p.tried: // for as long as a sleep costs
		p.long = 0
		return false, true
	}
	gap /= time.Duration(n) // so many came meanwhile, or at once
	short = gap < p.price
	return short, short || gap >= unsure*p.price
}

// again reports, after a poll that found nothing, whether to poll again before a sleep.
func (p *pace) again(c *counts) bool {
	if p.rounds < 0 {
		return false
	}
	if p.since.IsZero() {
		p.since, p.empty, p.told, p.slept = time.Now(), 0, 0, false
		p.spins = p.rounds > 0 || p.worth || bits.OnesCount16(p.recent) >= mostGaps || p.looks()
		p.tried = p.spins
	}
	p.empty++
	if p.empty-p.told >= toldEvery {
		p.count(c)
	}
	switch {
	case !p.spins:
		return false
	case p.rounds > 0:
		return p.empty <= p.rounds
	}
	return p.spent() < p.budget()
}

// spent is what the polls of this gap have cost.
func (p *pace) spent() time.Duration { return time.Duration(p.empty) * p.each }

// budget is what they may cost.
func (p *pace) budget() time.Duration {
	if p.long > 0 {
		return longPrice * p.price
	}
	return p.price
}

// looks reports whether the pace polls on in this gap, to see.
func (p *pace) looks() bool {
	if p.long > 0 {
		p.long--
		return true
	}
	if p.probe--; p.probe > 0 {
		return false
	}
	p.probe = 1 + rand.IntN(2*probeEvery-1)
	if p.probes++; p.probes%longEvery == 0 {
		p.long = longGaps
	}
	return true
}

// sleeps says that a sleep begins.
func (p *pace) sleeps(c *counts) {
	if !p.since.IsZero() {
		p.count(c)
	}
	p.slept, p.spins = true, false
}

// count counts what the polls of a gap cost, up to now.
func (p *pace) count(c *counts) {
	if p.spins {
		release.Count(&c.spun, uint64(time.Duration(p.empty-p.told)*p.each))
		p.told = p.empty
	}
}

// measure measures the price of a sleep, and that of an empty poll, behind which the poller calls after: it
// takes the least of several, since other programs may have the processors meanwhile. The device
// has no queue yet.
func (p *pace) measure(dev hw.Polled, wait func() error, after func(), c *counts) {
	if p.rounds != 0 {
		return
	}
	least := mostPrice
	var wcs [1]hw.WC
	for range measurements {
		began := time.Now()
		if dev.Arm() != nil {
			return
		}
		release.Count(&c.arms, 1)
		c.polled(dev.Poll(wcs[:]))
		armed := time.Since(began)
		woken := make(chan time.Time, 1)
		go wakeLater(dev, woken)
		release.Count(&c.waits, 1)
		err := wait()
		now := time.Now()
		if at := <-woken; err == nil && now.After(at) {
			least = min(least, armed+now.Sub(at))
		}
	}
	p.price = max(least, leastPrice)
	p.each = max(emptyPoll(dev, after, c), leastEach)
}

// emptyPoll measures what an empty poll takes, and what follows it, without others beside. It ends early
// where others have the processors: each yield may take milliseconds there, and Open waits.
func emptyPoll(dev hw.Polled, after func(), c *counts) time.Duration {
	least := mostEach
	var wcs [1]hw.WC
	for range measured {
		began := time.Now()
		c.polled(dev.Poll(wcs[:]))
		after()
		took := time.Since(began)
		least = min(least, took)
		if took > mostPrice {
			break
		}
	}
	return least
}

const (
	measurements = 5
	measured     = 16                    // empty polls
	falling      = 20 * time.Microsecond // how long a goroutine may take to fall asleep
)

// wakeLater wakes the device's waiter when it is asleep, and says when it did.
func wakeLater(dev hw.Polled, woken chan<- time.Time) {
	time.Sleep(falling)
	woken <- time.Now()
	dev.Wake()
}
