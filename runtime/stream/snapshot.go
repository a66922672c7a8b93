package stream

// Snapshot describes a connection at one moment. The counts only grow, unless they say what
// there is now.
type Snapshot struct {
	Read    uint64 // octets that the program has read
	Unread  uint64 // that have come, now
	Written uint64 // octets that were posted
	// UnreadByPeer has those that the peer's program has not read, now, as far as the peer has
	// told.
	UnreadByPeer uint64
	// Credits are the messages that may be sent now. One of them is kept for the end.
	Credits          uint64
	Reading, Writing bool // a call waits
	// Ended says why the connection is over; empty while it is not.
	Ended string
}

// DescribeEndpoint describes the connection in a snapshot of its adapter.
func (c *line) DescribeEndpoint() any { return c.Snapshot() }

// Snapshot describes the connection now. It disturbs no call.
func (c *line) Snapshot() Snapshot {
	in, out := &c.in, &c.out
	s := Snapshot{Reading: c.reader.waiting.Load() != 0, Writing: c.writer.waiting.Load() != 0}
	// What limits a counter is read behind it.
	s.Read = in.consumed.Load()
	s.Unread = in.produced.Load() - s.Read
	byPeer, sent := out.consumed.Load(), out.sent.Load()
	s.Written = out.produced.Load()
	s.UnreadByPeer = s.Written - min(byPeer, s.Written)
	if granted := out.granted.Load(); granted > sent {
		s.Credits = granted - sent
	}
	if e := c.ended.Load(); e != nil && e.err != nil {
		s.Ended = e.err.Error()
	}
	return s
}
