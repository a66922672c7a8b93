package host

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBusyTimeLeavesInterruptsOut(t *testing.T) {
	got, ok := busyTime("cpu  100 20 3 9999 50 60 70 8 0 0\ncpu0 1\n")
	assert.True(t, ok)
	assert.Equal(t, 1310*time.Millisecond, got)
	for _, text := range []string{"", "cpu 1 2", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h i"} {
		_, ok := busyTime(text)
		assert.False(t, ok, text)
	}
}

func TestSwitchesAreThoseOfTheWholeSystem(t *testing.T) {
	assert.EqualValues(t, 4711, switches("cpu 1 2\nintr 5 6\nctxt 4711\nbtime 7\n"))
	for _, text := range []string{"", "cpu 1 2\n", "cpu 1\nctxt many\n"} {
		assert.Zero(t, switches(text), text)
	}
}

// Linux says how busy its processors are, and no other system is asked.
func TestATurnIsDisturbedByOthersAlone(t *testing.T) {
	now := lookAtOthers()
	assert.Equal(t, runtime.GOOS == "linux" || runtime.GOOS == "android", now.known)
	o := others{began: time.Now().Add(-time.Hour), used: now.used - 1000*time.Hour, known: true}
	assert.Equal(t, now.known, o.disturbed(0))
	assert.False(t, o.disturbed(1001*time.Hour))
	assert.False(t, o.disturbed(-1), "what these processes used is unknown")
	assert.False(t, others{began: o.began}.disturbed(0), "what all used is unknown")
}
