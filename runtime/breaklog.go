package runtime

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"godat/hw"
)

// breaksPerSecond is how many connections that broke are logged in a second. A peer
// can break as many as it likes.
const breaksPerSecond = 10

// breakLog logs why connections broke.
type breakLog struct {
	log  *zap.Logger
	pool *pool

	mu      sync.Mutex
	began   time.Time // of the second at hand
	logged  int       // in it
	skipped int       // since the last that was logged
}

// broke logs one connection, unless too many broke in this second: the next line
// says how many were left out. It does not block: a task of the pool writes the line,
// since the caller is in the middle of the endpoint's work.
func (b *breakLog) broke(cause *hw.Cause) {
	skipped, ok := b.admit(time.Now())
	if ok && b.pool.upcall(func() {
		b.log.Warn("connection broke", zap.Error(cause), zap.Int("left out", skipped))
	}) != nil {
		b.mu.Lock()
		b.skipped += skipped + 1
		b.mu.Unlock()
	}
}

// admit decides whether a line is written, and how many were not since the last.
func (b *breakLog) admit(now time.Time) (skipped int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.began) >= time.Second {
		b.began, b.logged = now, 0
	}
	if b.logged == breaksPerSecond {
		b.skipped++
		return 0, false
	}
	b.logged++
	skipped, b.skipped = b.skipped, 0
	return skipped, true
}
