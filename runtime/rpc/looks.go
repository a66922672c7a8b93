package rpc

import (
	"sync"
	"time"
)

// looks are the calls that the last snapshot saw under way, with when a snapshot saw each first.
// No call reads a clock for that.
type looks struct {
	mu    sync.Mutex
	first map[uint32]time.Time
}

// underWay is a call that has no answer.
type underWay struct {
	call   uint32
	method uint16
}

// oldest finds the oldest of all calls that are under way.
func (l *looks) oldest(calls []underWay) (age time.Duration, method uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	first := make(map[uint32]time.Time, len(calls))
	for _, c := range calls {
		at, known := l.first[c.call]
		if !known {
			at = now
		}
		first[c.call] = at
		if d := now.Sub(at); d >= age {
			age, method = d, c.method
		}
	}
	l.first = first
	return age, method
}

// look is when a snapshot first saw that a count stands still while something waits.
type look struct {
	count uint64
	at    time.Time
}

// age says for how long at least the count has been the same.
func (l *look) age(count uint64) time.Duration {
	if l.at.IsZero() || l.count != count {
		*l = look{count, time.Now()}
	}
	return time.Since(l.at)
}
