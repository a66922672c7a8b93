package main

import (
	"sync"
	"time"
)

// limit bounds how long an operator waits in vain. Time in which this process does not run does not count: what came
// meanwhile is to be looked at first, and the nodes may have been paused together with it.
type limit struct {
	length time.Duration
	timer  *time.Timer // of look

	mu     sync.Mutex // held for moments
	since  time.Time
	seen   time.Time     // when the process ran last
	lost   time.Duration // since then it did not run for so long
	paused bool          // since pausedSince was called last
	ended  bool
}

const (
	lookTime   = 100 * time.Millisecond
	pausedTime = 500 * time.Millisecond // how late a timer is of a process that does not run, or hardly
)

// newLimit begins to wait. The caller calls stop in the end.
func newLimit(d time.Duration) *limit {
	now := time.Now()
	l := &limit{length: d, since: now, seen: now}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(lookTime, l.tick)
	return l
}

// tick is called by the timer.
func (l *limit) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.look()
		l.timer.Reset(lookTime)
	}
}

// look notes that the process runs. The caller holds the lock.
func (l *limit) look() {
	now := time.Now()
	if late := now.Sub(l.seen) - lookTime; late > pausedTime {
		l.lost += late
		l.paused = true
	}
	l.seen = now
}

// over reports whether the time is over.
func (l *limit) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	return l.seen.Sub(l.since)-l.lost > l.length
}

// again gives the whole time again: something was reached.
func (l *limit) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	l.since, l.lost = l.seen, 0
}

// pausedSince reports whether the process was paused since this was asked last: what failed meanwhile may do now.
func (l *limit) pausedSince() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look()
	was := l.paused
	l.paused = false
	return was
}

func (l *limit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.timer.Stop()
}
