package linger

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAWaiterSeesWhatComesWhileItLingers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	looks := 0
	w := On(func() bool { looks++; return looks == 5 })
	w.vain = 3
	w.Linger()
	assert.Equal(t, 5, looks)
	assert.Zero(t, w.vain, "the next linger is not left out")
}

func TestLingersInVainBecomeRare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	looks := 0
	w := On(func() bool { looks++; return false })
	var lingers []int // after how many calls
	for call := range 200 {
		before := looks
		w.Linger()
		if looks-before > 1 {
			lingers = append(lingers, call)
		}
	}
	assert.Equal(t, []int{0, 1, 4, 11, 26, 57, 120, 183}, lingers)
}

func TestAWaiterLetsOthersRunOnceOnASingleProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	looks := 0
	w := On(func() bool { looks++; return false })
	w.Linger()
	assert.Equal(t, 2, looks, "before and after")
}
