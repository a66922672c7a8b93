package posts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/ep"
	"godat/hw"
)

// The books say of what an endpoint counts that it is wrong, if it can't be right.
func TestTheBooksOnCounts(t *testing.T) {
	sent := func(n, octets uint64) ep.Moved { return ep.Moved{Kind: "SEND", Operations: n, Octets: octets} }
	counts := func(posted, flushed uint64, moved ...ep.Moved) ep.QueueSnapshot {
		return ep.QueueSnapshot{QueueCounts: ep.QueueCounts{Posted: posted, Flushed: flushed, Moved: moved}}
	}
	for name, test := range map[string]struct {
		state  uint32
		op     hw.Op
		flags  hw.Flags
		counts ep.QueueSnapshot
		right  bool
	}{
		"a send":                   {succeeded, hw.OpSend, 0, counts(1, 0, sent(1, 8)), true},
		"a send too many":          {succeeded, hw.OpSend, 0, counts(1, 0, sent(2, 8)), false},
		"an octet too few":         {succeeded, hw.OpSend, 0, counts(1, 0, sent(1, 7)), false},
		"an octet too many":        {succeeded, hw.OpSend, 0, counts(1, 0, sent(1, 9)), false},
		"a write for a send":       {succeeded, hw.OpWrite, 0, counts(1, 0, sent(1, 8)), false},
		"a failure for a success":  {succeeded, hw.OpSend, 0, counts(1, 1), false},
		"a failure":                {failed, hw.OpSend, 0, counts(1, 1), true},
		"a success for a failure":  {failed, hw.OpSend, 0, counts(1, 0, sent(1, 8)), false},
		"a post is not counted":    {succeeded, hw.OpSend, 0, counts(0, 0, sent(1, 8)), false},
		"one that was refused":     {refused, hw.OpSend, 0, counts(0, 0), true},
		"a quiet success":          {accepted, hw.OpSend, hw.Suppress, counts(1, 0, sent(1, 8)), true},
		"a quiet failure":          {accepted, hw.OpSend, hw.Suppress, counts(1, 1), true},
		"a quiet one that is gone": {accepted, hw.OpSend, hw.Suppress, counts(1, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &entry{op: test.op, came: test.op, flags: test.flags, length: 8, octets: 8}
			e.state.Store(test.state)
			books := tally{moved: make(map[string]ep.Moved)}
			books.add(e)
			assert.Equal(t, test.right, books.differs(&test.counts) == "", books.differs(&test.counts))
		})
	}
}
