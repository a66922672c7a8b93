package line

import (
	"math"
	"weak"

	"godat/hw"
)

// SetRules replaces the rules of the queue; timed says whether its operations are to be measured. One
// goroutine at a time calls it.
func (q *Queue) SetRules(r Rules, timed bool) {
	longest := uint64(math.MaxUint32)
	r.admits = recvPhases
	if q.plain == hw.OpSend {
		longest, r.admits = r.MaxMessage, requestPhases
	}
	if r.EndIsLast {
		r.admits &^= 1 << Over
	}
	if r.Shared {
		r.admits = 0
	}
	if r.timed = timed; timed {
		q.watched.Or(measured)
	} else {
		q.watched.And(^measured)
	}
	r.bound(longest)
	q.rules.Store(q.box.cold.crew.sharedRules(q.plain, &r))
}

// Rules are the present ones.
func (q *Queue) Rules() *Rules { return q.rules.Load() }

// sharedRules returns the rules of the last mailbox of the crew that had the same ones, or a copy
// of r: the posts of many endpoints that are alike then read the same cache lines.
func (c *Crew) sharedRules(plain hw.Op, r *Rules) *Rules {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.rules[plain].Value()
	if last == nil || *last != *r {
		last = new(Rules)
		*last = *r
		c.rules[plain] = weak.Make(last)
	}
	return last
}
