package node

import (
	"sync/atomic"
	"time"
)

// recent is for how long something that took long is told.
const recent = 30 * time.Second

var epoch = time.Now()

// clock is the nanoseconds since epoch, which go on whatever somebody sets the system's clock to. It is never 0.
func clock() int64 { return int64(time.Since(epoch)) | 1 }

// pace is how long one thing after another takes, such as a goroutine's writes to a disk until they are stable. One
// goroutine at a time begins and ends; others may look.
type pace struct {
	began  atomic.Int64 // when the one under way began, by clock; 0 is none
	took   atomic.Int64 // by the longest of late, in nanoseconds
	ended  atomic.Int64 // when that one ended; 0 is none
	newest atomic.Int64 // took the last one
	last   atomic.Int64 // when that one ended; 0 is none
}

// Takes is how long a node's writes take until they are stable.
type Takes struct {
	Newest time.Duration `json:"newest,omitempty"` // the last one; the one under way, if it has taken longer so far
	// Longest is that of the last half minute, and Ago when it ended; 0 while it is under way.
	Longest time.Duration `json:"longest,omitempty"`
	Ago     time.Duration `json:"ago,omitempty"`
}

// during measures a write.
func (p *pace) during(write func() error) error {
	p.begin()
	defer p.end()
	return write()
}

// begin begins, unless one is under way.
func (p *pace) begin() { p.began.CompareAndSwap(0, clock()) }

// end ends the one under way, if there is one.
func (p *pace) end() {
	began, now := p.began.Load(), clock()
	if began == 0 {
		return
	}
	took := now - began
	p.last.Store(now)
	p.newest.Store(took)
	if ended := p.ended.Load(); ended == 0 || took >= p.took.Load() || now-ended > int64(recent) {
		p.ended.Store(now)
		p.took.Store(took)
	}
	p.began.Store(0)
}

// forget is as if nothing were under way.
func (p *pace) forget() { p.began.Store(0) }

// longest is how long the one under way has taken, or a recent one took.
func (p *pace) longest() time.Duration { return takes(p).Longest }

// takes is how long the things of all paces take.
func takes(all ...*pace) (t Takes) {
	now := clock()
	last := int64(0)
	for _, p := range all {
		if at := p.last.Load(); at != 0 && (last == 0 || at > last) {
			last, t.Newest = at, time.Duration(p.newest.Load())
		}
		ended := p.ended.Load()
		if ago, took := now-ended, time.Duration(p.took.Load()); ended != 0 && ago <= int64(recent) && took >= t.Longest {
			t.Longest, t.Ago = took, time.Duration(max(ago, 1))
		}
	}
	for _, p := range all {
		if began := p.began.Load(); began != 0 {
			d := time.Duration(now - began)
			t.Newest = max(t.Newest, d)
			if d >= t.Longest {
				t.Longest, t.Ago = d, 0
			}
		}
	}
	return t
}

// aged is what was said some time ago.
func (t Takes) aged(d time.Duration) Takes {
	if t.Ago != 0 {
		t.Ago += d
	}
	return t
}
