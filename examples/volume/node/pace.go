package node

import (
	"sync/atomic"
	"time"
)

// recent is for how long a write to the disk that took long is told.
const recent = 30 * time.Second

// pace is how long one goroutine's writes to a disk take until they are stable. Others may look.
type pace struct {
	began atomic.Int64 // when the write under way began, in nanoseconds since 1970; 0 is none
	took  atomic.Int64 // by the longest of late, in nanoseconds
	ended atomic.Int64 // when that one ended
}

// during measures a write.
func (p *pace) during(write func() error) error {
	began := time.Now()
	p.began.Store(began.UnixNano())
	err := write()
	now := time.Now()
	if took := int64(now.Sub(began)); took >= p.took.Load() || now.UnixNano()-p.ended.Load() > int64(recent) {
		p.ended.Store(now.UnixNano())
		p.took.Store(took)
	}
	p.began.Store(0)
	return err
}

// longest is how long the write under way has taken, or a recent one took.
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
