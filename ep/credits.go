package ep

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

// Credits count two things, so that a sender never sends more messages than the
// peer has receives for: the receives that the peer has posted and this end has not
// used yet, and the receives posted here that the peer does not know of yet.
// Credits put nothing on the wire. The two programs agree how one tells the other:
// by a number in a message, or by the rule that each answer is worth one credit.
// Methods may be called from any goroutine. A nil *Credits has no credit, ever.
type Credits struct {
	left atomic.Int64
	owed atomic.Int64

	number uint64
}

// NewCredits makes the credits for a peer that has posted n receives to begin with.
func NewCredits(n int) *Credits {
	c := &Credits{number: credits.Add(1)}
	c.left.Store(int64(n))
	return c
}

// Take takes the credit for one message. It reports false if there is none; the
// message must then wait.
func (c *Credits) Take() bool {
	for c != nil {
		n := c.left.Load()
		if n <= 0 {
			return false
		}
		if c.left.CompareAndSwap(n, n-1) {
			return true
		}
	}
	return false
}

// Grant adds n credits: the peer said that it has posted n receives, or sent an
// answer that is worth one, or a message whose credit was taken was not sent.
func (c *Credits) Grant(n int) {
	if c != nil {
		c.left.Add(int64(n))
	}
}

// Left returns how many messages may be sent now.
func (c *Credits) Left() int {
	if c == nil {
		return 0
	}
	return int(c.left.Load())
}

// Owe records that n receives were posted here that the peer does not know of.
func (c *Credits) Owe(n int) {
	if c != nil {
		c.owed.Add(int64(n))
	}
}

// Pay returns how many receives the peer does not know of, and counts from 0 again.
// The program tells the number to the peer with its next message, and the peer
// grants itself as many credits.
func (c *Credits) Pay() int {
	if c == nil {
		return 0
	}
	return int(c.owed.Swap(0))
}

// String returns the credits for a log. It may be called at any time, as the String
// of every handle.
func (c *Credits) String() string {
	if c == nil {
		return "Credits(nil)"
	}
	return fmt.Sprintf("Credits(%d, %d left, %d owed)", c.number, c.left.Load(), c.owed.Load())
}

// LogValue is String, for log/slog.
func (c *Credits) LogValue() slog.Value { return slog.StringValue(c.String()) }
