package rpc

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/mem"
)

// An int of 32 bits does not hold each length that a peer may tell.
func TestNoLengthOfAPeersIsNegative(t *testing.T) {
	long := mem.RemoteSegment{Len: math.MaxUint32}
	var r Request
	r.source, r.sink = long, long
	assert.Positive(t, r.SourceLen())
	assert.Positive(t, r.SinkLen())
	s := &Server{cfg: Config{}}
	assert.Positive(t, s.newServed(nil, hello{message: math.MaxUint32}).answer)
}
