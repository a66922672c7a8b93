package release

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAStoredValueIsLoaded(t *testing.T) {
	var x struct {
		before uint64
		narrow atomic.Uint32
		wide   atomic.Uint64
		after  uint64
	}
	Uint32(&x.narrow, 0xfedcba98)
	Uint64(&x.wide, 0xfedcba9876543210)
	assert.Equal(t, uint32(0xfedcba98), x.narrow.Load())
	assert.Equal(t, uint64(0xfedcba9876543210), x.wide.Load())
	Relaxed(&x.wide, 0xfedcba9876543210)
	Count(&x.wide, 1)
	assert.Equal(t, uint64(0xfedcba9876543211), x.wide.Load())
	assert.Zero(t, x.before)
	assert.Zero(t, x.after)
}
