package journal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFenceKeepsOutEarlierTermsAndSlotsThatAreNeeded(t *testing.T) {
	f := NewFence(3)
	assert.False(t, f.Pass(2), "it has voted in term 3")
	assert.True(t, f.Pass(3))
	assert.True(t, f.Pass(5))
	assert.False(t, f.Pass(4))
	f.Hold(7, 10)
	assert.True(t, f.Has(7, 10))
	assert.False(t, f.Has(7, 11), "another entry")
	assert.False(t, f.Has(6, 10), "another slot")
	assert.True(t, f.Held(7, 11, 9))
	assert.False(t, f.Held(6, 11, 9), "another slot")
	assert.False(t, f.Held(7, 10, 9), "the entry itself, once more")
	assert.False(t, f.Held(7, 11, 10), "the entry is released")
}
