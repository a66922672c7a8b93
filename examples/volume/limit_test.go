package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// pause is what the process's clock shows after it has not run for some time.
func (l *limit) pause(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since, l.seen = l.since.Add(-d), l.seen.Add(-d)
}

func TestTimeInWhichTheProcessDoesNotRunDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimit(30 * time.Second)
		defer l.stop()
		time.Sleep(29 * time.Second)
		assert.False(t, l.over())
		assert.False(t, l.pausedSince())
		l.pause(time.Hour)
		assert.False(t, l.over())
		assert.True(t, l.pausedSince())
		assert.False(t, l.pausedSince())
		time.Sleep(2 * time.Second)
		assert.True(t, l.over())
		assert.False(t, l.pausedSince())
		l.again()
		time.Sleep(29 * time.Second)
		l.pause(time.Hour)
		assert.False(t, l.over())
		time.Sleep(2 * time.Second)
		assert.True(t, l.over())
	})
}
