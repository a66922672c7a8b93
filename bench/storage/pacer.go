package storage

import (
	"runtime"
	"time"

	"godat/bench/host"
)

// pacer ticks at the intended times of a load. It sleeps until shortly before each one and spins the
// rest, since a sleep ends late. It spins for a quarter of the time between two at most, so that it
// leaves a processor to the measured program.
type pacer struct {
	base     time.Time
	period   time.Duration
	count    int64
	ticks    chan struct{} // has a value when the next time has come; several may have
	stop     chan struct{}
	done     chan struct{}
	spun     time.Duration // processor time of the spinning; read when done is closed
	spinning time.Duration
}

// longestSpin is how long before an intended time the pacer spins at most.
const longestSpin = 50 * time.Microsecond

// startPacer paces count times from base on.
func startPacer(base time.Time, period time.Duration, count int64) *pacer {
	p := &pacer{
		base: base, period: period, count: count, ticks: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		spinning: min(longestSpin, period/4),
	}
	go p.run()
	return p
}

func (p *pacer) intended(n int64) time.Duration { return time.Duration(n) * p.period }

func (p *pacer) run() {
	defer close(p.done)
	sleep, end := newSleeper()
	defer end()
	for n := range p.count {
		at := p.intended(n)
		if wait := at - p.spinning - time.Since(p.base); wait > 0 {
			sleep(wait)
		}
		p.spin(at)
		select {
		case p.ticks <- struct{}{}:
		case <-p.stop:
			return
		default: // the last one was not taken yet
		}
	}
}

// spin keeps the processor until a time. The clock of its thread says what that takes.
func (p *pacer) spin(until time.Duration) {
	if time.Since(p.base) >= until {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, _ := host.ThreadTime()
	for time.Since(p.base) < until {
	}
	now, _ := host.ThreadTime()
	p.spun += now - began
}

// end stops the pacer, and returns the processor time of its spinning.
func (p *pacer) end() time.Duration {
	close(p.stop)
	<-p.done
	return p.spun
}

// paced is a client without commands: it takes the pacer's ticks, and notes when.
type paced struct{}

func (paced) run(b *book) (pacing time.Duration, err error) {
	if b.closed() {
		for !b.over() {
			b.begin(0)
			b.end(0)
		}
		return 0, nil
	}
	p := startPacer(b.base, b.period, b.total)
	defer func() { pacing = p.end() }()
	for !b.over() {
		for b.ready() {
			b.begin(0)
			b.end(0)
		}
		if !b.over() {
			<-p.ticks
		}
	}
	return 0, nil
}

func (paced) idle(until time.Time) error {
	time.Sleep(time.Until(until))
	return nil
}

func (paced) close() error { return nil }
