package ep

import (
	"slices"

	"godat/ep/internal/line"
)

// QueueCounts are what the requests, or the receives, of one endpoint or of several came to.
type QueueCounts struct {
	Posted uint64
	Moved  []Moved // what succeeded, by the kind of operation
	// Failed counts operations that ended with an error, without those that were Flushed
	// because the connection ended.
	Failed, Flushed uint64
}

// Moved says how many operations of a kind succeeded, and how many octets they moved. Those of
// suppressed requests are known when a later request completes.
type Moved struct {
	Kind               string // as [hw.Op] names it
	Operations, Octets uint64
}

// succeeded is how many operations did.
func (c *QueueCounts) succeeded() (n uint64) {
	for i := range c.Moved {
		n += c.Moved[i].Operations
	}
	return n
}

// take makes c what the posts of a queue came to, of which now has a part. The caller holds record.Mu.
func (c *QueueCounts) take(q *line.Queue, now line.Counts) {
	*c = QueueCounts{Posted: now.Posted, Failed: now.Failed, Flushed: now.Flushed}
	for op, m := range q.Moved() {
		c.Moved = append(c.Moved, Moved{Kind: op.String(), Operations: m.Operations, Octets: m.Octets})
	}
}

// add adds the counts of another.
func (c *QueueCounts) add(other *QueueCounts) {
	c.Posted, c.Failed, c.Flushed = c.Posted+other.Posted, c.Failed+other.Failed, c.Flushed+other.Flushed
	for _, m := range other.Moved {
		i := slices.IndexFunc(c.Moved, func(own Moved) bool { return own.Kind == m.Kind })
		if i < 0 {
			c.Moved = append(c.Moved, m)
			continue
		}
		c.Moved[i].Operations += m.Operations
		c.Moved[i].Octets += m.Octets
	}
}

// clone is a copy that shares nothing.
func (c *QueueCounts) clone() QueueCounts {
	copied := *c
	copied.Moved = slices.Clone(c.Moved)
	return copied
}

// freedCounts sum what endpoints counted that are freed.
type freedCounts struct{ requests, recvs QueueCounts }
