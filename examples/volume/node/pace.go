package node

import (
	"sync/atomic"
	"time"
)

// recent is for how long something that took long is told.
const recent = 30 * time.Second

// pace is how long one thing after another takes, such as a goroutine's writes to a disk until they are stable. One
// goroutine at a time begins and ends; others may look.
type pace struct {
	began atomic.Int64 // when the one under way began, in nanoseconds since 1970; 0 is none
	took  atomic.Int64 // by the longest of late, in nanoseconds
	ended atomic.Int64 // when that one ended
}

// during measures a write.
func (p *pace) during(write func() error) error {
	p.begin()
	defer p.end()
	return write()
}

// begin begins, unless one is under way.
func (p *pace) begin() { p.began.CompareAndSwap(0, time.Now().UnixNano()) }

// end ends the one under way, if there is one.
func (p *pace) end() {
	began, now := p.began.Load(), time.Now().UnixNano()
	if took := now - began; began != 0 && (took >= p.took.Load() || now-p.ended.Load() > int64(recent)) {
		p.ended.Store(now)
		p.took.Store(took)
	}
	p.began.Store(0)
}

// forget is as if nothing were under way.
func (p *pace) forget() { p.began.Store(0) }

// longest is how long the one under way has taken, or a recent one took.
func (p *pace) longest() (d time.Duration) {
	now := time.Now().UnixNano()
	if began := p.began.Load(); began != 0 {
		d = time.Duration(now - began)
	}
	if now-p.ended.Load() <= int64(recent) {
		d = max(d, time.Duration(p.took.Load()))
	}
	return d
}
