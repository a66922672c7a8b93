package polling

import (
	"math/bits"
	"time"

	"godat/hw"
	"godat/internal/release"
)

// pace decides for what polls a device, a thread or the back-stop, whether it polls an empty
// device again or sleeps until the device wakes it. It is the only one that decides so for
// the device.
//
// A sleep has a price: the device is armed, polled and waited for, and something is woken. A
// poll that finds something before such a time is over saves a sleep; polls in vain for that
// time cost as much as one. pace remembers of the last gaps between completions how many were
// shorter than the price. It polls on while two thirds of them were, and for no longer than the
// price. Then polls take less than the sleeps that they save, if a short gap takes half the
// price; and no mix of gaps costs much more than twice what a decision made in hindsight could.
//
// After a sleep a gap is known only in part, since nobody knows how long the wake-up took. So
// a gap that may have been short is not counted, and at one gap of probeEvery the pace polls
// on, to see.
//
// Clocks are read around empty polls alone: while every poll finds something, none is read.
// The goroutine or thread that polls owns the pace.
type pace struct {
	rounds int           // how many empty polls, in place of what the gaps say; 0: the gaps say it
	price  time.Duration // of a sleep
	recent uint16        // for each of the last gaps, the last in bit 0: it was shorter than the price
	gaps   uint          // so many there were

	since time.Time // when the device was found empty; zero while the last poll found something
	empty int       // polls since
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
	// mostEmpty bounds the polls of a gap, where no time passes while a program runs.
	mostEmpty = 1 << 14

	leastPrice = time.Microsecond
	mostPrice  = 50 * time.Microsecond // a price measured while others had the processors
)

// newPace returns the pace for a number of rounds: 0 leaves it to the gaps, less than 0
// means to sleep at once.
func newPace(rounds int) pace { return pace{rounds: rounds, price: leastPrice} }

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
	p.count(c, gap)
	switch {
	case !p.slept:
		return gap < p.price, true
	case p.tried: // for as long as a sleep costs
		return false, true
	}
	gap /= time.Duration(n) // so many came meanwhile, or at once
	short = gap < p.price
	return short, short || gap >= unsure*p.price
}

// again reports, after a poll that found nothing, whether to poll again before a sleep.
func (p *pace) again() bool {
	if p.rounds < 0 {
		return false
	}
	if p.since.IsZero() {
		p.since, p.empty, p.slept = time.Now(), 0, false
		p.gaps++
		p.spins = p.rounds > 0 || bits.OnesCount16(p.recent) >= mostGaps || p.gaps%probeEvery == 0
		p.tried = p.spins
	}
	p.empty++
	switch {
	case !p.spins:
		return false
	case p.rounds > 0:
		return p.empty <= p.rounds
	}
	return p.empty <= mostEmpty && time.Since(p.since) < p.price
}

// sleeps says that a sleep begins.
func (p *pace) sleeps(c *counts) {
	if !p.since.IsZero() {
		p.count(c, time.Since(p.since))
	}
	p.slept = true
}

// count counts a gap, up to now, if it was spent on polls.
func (p *pace) count(c *counts, gap time.Duration) {
	if p.spins {
		release.Count(&c.spun, uint64(gap))
		p.spins = false
	}
}

// measure measures the price of a sleep: it takes the least of several, since other programs
// may have the processors meanwhile. The device has no queue yet.
func (p *pace) measure(dev hw.Polled, c *counts) {
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
		err := dev.Wait()
		now := time.Now()
		if at := <-woken; err == nil && now.After(at) {
			least = min(least, armed+now.Sub(at))
		}
	}
	p.price = max(least, leastPrice)
}

const (
	measurements = 5
	falling      = 20 * time.Microsecond // how long a goroutine may take to fall asleep
)

// wakeLater wakes the device's waiter when it is asleep, and says when it did.
func wakeLater(dev hw.Polled, woken chan<- time.Time) {
	time.Sleep(falling)
	woken <- time.Now()
	dev.Wake()
}
