package runtime

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"godat/hw"
)

// breaksPerSecond is how many broken and dropped connections are logged in a second. A
// peer can break as many as it likes.
const breaksPerSecond = 10

// breakLog logs why connections broke, and why listeners dropped some that had not begun.
type breakLog struct {
	log  *zap.Logger
	pool *pool

	mu      sync.Mutex
	began   time.Time // when the current second began
	logged  int       // in the current second
	skipped int       // since the last line
}

// write logs one connection, unless this second has had its lines: then the next line
// says how many connections were left out. It does not block: a task of the pool writes
// the line, because the caller is in the middle of the endpoint's or listener's work.
func (b *breakLog) write(message string, cause *hw.Cause) {
	skipped, ok := b.admit(time.Now())
	if ok && b.pool.upcall(func() {
		b.log.Warn(message, zap.Error(cause), zap.Int("left out", skipped))
	}) != nil {
		b.mu.Lock()
		b.skipped += skipped + 1
		b.mu.Unlock()
	}
}

// admit decides whether there is room for a line, and says how many connections the last
// lines left out.
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
