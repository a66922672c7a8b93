package stream

import (
	"fmt"
	"sync"
	"time"
)

// Snapshot describes a connection at one moment. The counts only grow, unless they say what
// there is now.
type Snapshot struct {
	Read    uint64 // octets that the program has read
	Unread  uint64 // that have come, now
	Written uint64 // octets that were posted
	// UnreadByPeer has those that the peer's program has not read, now, as far as the peer has
	// told.
	UnreadByPeer uint64
	// UnreadAge and UnreadByPeerAge are for how long at least nothing of these has been read: since
	// somebody took a snapshot in which the same octet was the first.
	UnreadAge, UnreadByPeerAge time.Duration
	// Credits are the messages that may be sent now. Two of them are kept, for a report and for the
	// end.
	Credits          uint64
	Reading, Writing bool   // a call waits
	Memory           uint64 // octets that are registered for the connection, but for the program's that a call lends
	// Ended says why the connection is over; empty while it is not.
	Ended string
}

// Trouble says what is wrong with the connection, if nothing has been read for so long.
func (s Snapshot) Trouble(late time.Duration) string {
	switch {
	case s.Writing && s.UnreadByPeerAge >= late && s.Credits <= reportCredit+1:
		return fmt.Sprintf("a Write waits, because the peer's program has read nothing for %s; %s unread there, and the credits that the peer gave are used up", lasting(s.UnreadByPeerAge), lie(s.UnreadByPeer))
	case s.Writing && s.UnreadByPeerAge >= late:
		return fmt.Sprintf("a Write waits, because the peer's program has read nothing for %s; %s unread there", lasting(s.UnreadByPeerAge), lie(s.UnreadByPeer))
	case s.UnreadAge >= late && !s.Reading:
		return fmt.Sprintf("this program has read nothing for %s; %s unread here", lasting(s.UnreadAge), lie(s.Unread))
	}
	return ""
}

// RegisteredMemory is Memory, by which a page of owners of memory knows a stream.
func (s Snapshot) RegisteredMemory() uint64 { return s.Memory }

func lie(octets uint64) string {
	if octets == 1 {
		return "1 octet lies"
	}
	return fmt.Sprintf("%d octets lie", octets)
}

// lasting is a duration as the page of godat/runtime/inspect writes it.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// looked is when snapshots first saw that so many octets had been read, and no more.
type looked struct {
	mu           sync.Mutex
	here, byPeer look
}

type look struct {
	read uint64
	at   time.Time
}

// age says for how long octets have waited to be read.
func (l *look) age(read, unread uint64, now time.Time) time.Duration {
	if unread == 0 || l.at.IsZero() || l.read != read {
		*l = look{read, now}
	}
	return now.Sub(l.at)
}

// Snapshot describes the connection now. It disturbs no call.
func (c *Conn) Snapshot() Snapshot {
	if !c.made() {
		return Snapshot{}
	}
	return c.line.snapshot()
}

// DescribeEndpoint describes the connection in a snapshot of its adapter: the line is the endpoint's context.
func (c *line) DescribeEndpoint() any { return c.snapshot() }

func (c *line) snapshot() Snapshot {
	in, out := &c.flow.in, &c.flow.out
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
	s.Memory = uint64(c.memory.Load())
	if e := c.ended.Load(); e != nil && e.err != nil {
		s.Ended = e.err.Error()
	}
	c.looked.CompareAndSwap(nil, new(looked))
	l, now := c.looked.Load(), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.UnreadAge = l.here.age(s.Read, s.Unread, now)
	s.UnreadByPeerAge = l.byPeer.age(byPeer, s.UnreadByPeer, now)
	return s
}
