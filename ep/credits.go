package ep

import (
	"fmt"
	"sync/atomic"
)

// Credits count the receives that the peer has posted and this end has not used
// yet, so that a sender never sends more than the peer has room for; and the other
// way round, the receives posted here that the peer was not told of. Nothing is put
// on the wire: the two programs agree how one tells the other, which is by a
// number in a message, or by the rule that each answer is worth one. Methods may
// be called from any goroutine. Nil credits are none.
type Credits struct {
	left atomic.Int64
	owed atomic.Int64
}

// NewCredits makes credits for a peer that has posted n receives to begin with.
func NewCredits(n int) *Credits {
	c := new(Credits)
	c.left.Store(int64(n))
	return c
}

// Take takes the credit for one message; it reports false, and the message is not to
// be sent yet, when there is none.
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

// Grant adds n credits: the peer said that it has posted as many receives, or
// answered; or a message that one was taken for was not sent.
func (c *Credits) Grant(n int) {
	if c != nil {
		c.left.Add(int64(n))
	}
}

// Left is how many messages may be sent now.
func (c *Credits) Left() int {
	if c == nil {
		return 0
	}
	return int(c.left.Load())
}

// Owe notes that n receives were posted here that the peer doesn't know of.
func (c *Credits) Owe(n int) {
	if c != nil {
		c.owed.Add(int64(n))
	}
}

// Pay takes what is owed to the peer, to be told with the next message, which the
// peer grants itself.
func (c *Credits) Pay() int {
	if c == nil {
		return 0
	}
	return int(c.owed.Swap(0))
}

// String says how many there are. It may be called at any time, as the String of every
// handle.
func (c *Credits) String() string {
	if c == nil {
		return "Credits(nil)"
	}
	return fmt.Sprintf("Credits(%p, %d left, %d owed)", c, c.left.Load(), c.owed.Load())
}
