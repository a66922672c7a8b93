package mem

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestTheMemoryThatFreedRegionsLeaveMappedIsBounded(t *testing.T) {
	for name, c := range map[string]struct{ size, pairs, ranges int }{
		"many small regions": {4096, 3 * maxRetired, maxRetired},
		"large regions":      {maxRetiredBytes / 8, 30, 8},
		"the largest":        {maxRetiredBytes, 3, 1},
		"too large":          {maxRetiredBytes + 1, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, d, pz := newTestPZ(t)
			var last []byte
			for range c.pairs {
				l := alloc(t, pz, c.size, hw.AllPrivileges)
				last = l.Bytes()
				last[0] = 1
				require.NoError(t, l.Free())
			}
			ranges, mapped := mappedIn(d)
			assert.Equal(t, c.ranges, ranges)
			assert.Equal(t, int64(c.ranges*c.size), mapped)
			if c.ranges > 0 {
				assert.True(t, bytes.Equal(last, make([]byte, c.size)), "the last one freed reads as zeros")
			}
			require.NoError(t, d.Close())
			ranges, mapped = mappedIn(d)
			assert.Zero(t, ranges)
			assert.Zero(t, mapped)
		})
	}
}

// When retired ranges exceed the limit, the oldest is unmapped.
func TestTheRangeThatWasFreedFirstIsGivenBackFirst(t *testing.T) {
	_, d, pz := newTestPZ(t)
	var freed []*block
	for range maxRetired + 10 {
		l := alloc(t, pz, 4096, hw.LocalRead)
		freed = append(freed, l.block)
		require.NoError(t, l.Free())
	}
	for i, b := range freed {
		_, mapped := d.blocks.has[b]
		require.Equal(t, i >= 10, mapped, "range %d", i)
	}
}

// Two closers of a domain, or a closer and a Free that finds too many retired
// ranges, may unmap the same range at the same time.
func TestARangeIsGivenBackOnce(t *testing.T) {
	_, d, pz := newTestPZ(t)
	l := alloc(t, pz, 4096, hw.LocalRead)
	require.NoError(t, l.Free())
	require.NoError(t, d.unmap(l.block))
	require.NoError(t, d.unmap(l.block), "the address may be somebody else's by now")
	_, mapped := mappedIn(d)
	assert.Zero(t, mapped)
}
