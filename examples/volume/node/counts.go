package node

import (
	"sync/atomic"
	"time"
)

// Counts are what a node has counted since it began.
type Counts struct {
	Leaders      uint64 `json:"leaders"`      // how often somebody came to lead
	Refusals     uint64 `json:"refusals"`     // calls that nodes refused each other, the first time and each time again
	Rebuilds     uint64 `json:"rebuilds"`     // of this node's disk that ended
	RebuiltBytes uint64 `json:"rebuiltBytes"` // that those, and others, read from leaders
}

// counts are Counts that go on.
type counts struct{ leaders, refusals, rebuilds, rebuiltBytes atomic.Uint64 }

func (c *counts) now() Counts {
	return Counts{c.leaders.Load(), c.refusals.Load(), c.rebuilds.Load(), c.rebuiltBytes.Load()}
}

// leader counts a leader that is another one than before.
func (c *counts) leader(was, now uint64) {
	if now != 0 && now != was {
		c.leaders.Add(1)
	}
}

// committed tells how long a write took.
func (c *consensus) committed(begun time.Time) {
	if c.cfg.OnCommit != nil {
		c.cfg.OnCommit(time.Since(begun))
	}
}
