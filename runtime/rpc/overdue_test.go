package rpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/mem"
)

// Answers wait for a client while this process is paused: the client gets its time again, but not for ever.
func TestAClientIsNotBlamedForAPauseOfItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &link{stall: time.Minute, waiting: make([]*mem.Buffer, 1)}
		l.limit = time.NewTimer(time.Hour)
		defer l.limit.Stop()
		l.watch()
		assert.False(t, l.overdue(), "the time is not over")
		for range lateTries {
			l.due = time.Now().Add(-time.Hour)
			assert.False(t, l.overdue(), "the process was paused")
			assert.Equal(t, time.Minute, time.Until(l.due), "the client has its time again")
		}
		l.due = time.Now().Add(-time.Hour)
		assert.True(t, l.overdue(), "a pause is believed three times")
		l.watch()
		time.Sleep(time.Minute)
		assert.True(t, l.overdue(), "the time is over")
		l.waiting = nil
		assert.False(t, l.overdue(), "all was taken just now")
	})
}
