package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/mem"
	dat "godat/runtime"
)

// link is an end of a connection, with the credits of both directions. Any goroutine may
// call its methods, but for took, which its reader calls.
//
// A message that is posted has a receive at the peer: sent, less what the peer has said it
// has taken, stays below the peer's receives, the last of which is for a CREDIT alone. No
// two ends wait for each other's credits: an end without any has most-1 messages on their
// way; the peer takes them, which is half of its receives or more, and then sends its
// CREDIT if nothing else, for which it has the last receive here.
type link struct {
	conn  *dat.Conn
	own   uint32        // receives of this end
	stall time.Duration // how long messages wait for the next receive of the peer; 0 for ever

	mu       sync.Mutex
	most     uint32        // receives of the peer; 0 before its hello
	sent     uint32        // messages posted
	told     uint32        // of which the peer has taken so many
	taken    uint32        // messages of the peer's that were taken
	reported uint32        // as the last message posted has it
	waiting  []*mem.Buffer // messages without a receive at the peer, in order
	limit    *time.Timer   // ends stall; nil before the first message that waits
	due      time.Time     // when limit ends stall
	late     int           // how often limit came late for the first message that waits

	crediting bool  // a goroutine waits for a buffer for a CREDIT
	over      bool  // nothing is sent any more
	why       error // it has ended, or this end breaks it
	look      look  // at the first message that waits

	backlog func(n int) // counts links with waiting messages; nil of a client
}

// begin is called with the peer's hello, before the first message.
func (l *link) begin(peer hello) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = peer.receives
}

// send sends a message, at once or when the peer has a receive for it. It takes the buffer.
func (l *link) send(b *mem.Buffer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		l.conn.Release(b)
		return ended(l.why)
	}
	if len(l.waiting) > 0 || l.room() < 2 {
		l.waiting = append(l.waiting, b)
		if len(l.waiting) == 1 {
			l.count(1)
			l.watch()
		}
		return nil
	}
	return l.post(b)
}

// unqueue takes a message from those that wait. The caller holds mu.
func (l *link) unqueue(i int) {
	l.waiting = slices.Delete(l.waiting, i, i+1)
	if len(l.waiting) == 0 {
		l.count(-1)
	}
	l.watch()
}

// watch gives the peer the time to take the first message that waits.
func (l *link) watch() {
	l.late = 0
	l.again()
}

// again gives the peer the time once more.
func (l *link) again() {
	l.due = time.Now().Add(l.stall)
	switch {
	case l.stall == 0:
	case l.limit == nil:
		l.limit = time.AfterFunc(l.stall, l.stalled)
	case len(l.waiting) == 0:
		l.limit.Stop()
	default:
		l.limit.Reset(l.stall)
	}
}

// fail breaks the connection for a reason of this end's. Its end comes as an event.
func (l *link) fail(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breakOff(why)
}

// because says why this end is about to end the connection.
func (l *link) because(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = cmp.Or(l.why, why)
}

// breakOff is fail. The caller holds mu.
func (l *link) breakOff(why error) {
	if !errors.Is(why, net.ErrClosed) { // of a send: its close is the reason
		l.why = cmp.Or(l.why, why)
	}
	_ = l.conn.Endpoint.Disconnect(ep.Abrupt) // fails when the connection has ended
}

// stalled breaks the connection of a client that takes no answers.
func (l *link) stalled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.overdue() {
		return
	}
	l.breakOff(fmt.Errorf("the client took none of the answers that wait for %v, which is Config.Stall, so this server broke the connection", l.stall))
}

// overdue reports whether the first message that waits has waited for too long: not if it was taken just now,
// and not if this process sees the end of the time late. The caller holds mu.
func (l *link) overdue() bool {
	switch {
	case len(l.waiting) == 0 || time.Now().Before(l.due):
		return false
	case isLate(l.due, l.stall) && l.late < lateTries:
		l.late++
		l.again()
		return false
	}
	return true
}

// reason is why the connection has ended, for calls and requests.
func (l *link) reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ended(l.why)
}

// count tells that there is a backlog, or none any more.
func (l *link) count(n int) {
	if l.backlog != nil {
		l.backlog(n)
	}
}

func (l *link) room() uint32 { return l.most - (l.sent - l.told) }

// post posts a message. Where that fails the connection breaks, since the other end would wait
// for the message. The caller holds mu.
func (l *link) post(b *mem.Buffer) error {
	putTaken(b.Bytes(), l.taken)
	l.reported = l.taken
	l.sent++
	err := l.conn.Send(b)
	if err != nil {
		l.breakOff(err)
		return ended(err)
	}
	return nil
}

// withdraw takes back a CALL that waits; false if it has been posted.
func (l *link) withdraw(call uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range l.waiting {
		if isCall(b.Bytes(), call) {
			l.unqueue(i)
			l.conn.Release(b)
			return true
		}
	}
	return false
}

// read decodes a message of the peer's, and takes note of what it says of ours.
func (l *link) read(b *mem.Buffer) (m message, err error) {
	if m, err = parse(b.Bytes()); err == nil {
		err = l.took(m.taken)
	}
	return m, err
}

// took is called for each message that was taken, with what it says of ours. It posts what
// waited for that, and a CREDIT if the peer may be short of receives.
func (l *link) took(said uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	if l.sent-said > l.sent-l.told {
		return errMalformed
	}
	l.told = said
	for len(l.waiting) > 0 && l.room() >= 2 && !l.over {
		b := l.waiting[0]
		err := l.post(b)
		l.unqueue(0)
		if err != nil {
			return err
		}
	}
	if l.taken-l.reported >= max(l.own/2, 1) && l.room() > 0 && !l.over && !l.crediting {
		return l.credit()
	}
	return nil
}

// credit posts a CREDIT. Where there is no buffer, a goroutine waits for one: sends that
// complete give buffers back, and the end of the connection ends the wait. The caller holds mu.
func (l *link) credit() error {
	b := l.conn.Buffer()
	if b == nil {
		l.crediting = true
		go l.creditLater()
		return nil
	}
	return l.post(bare(b, kindCredit, 0))
}

func (l *link) creditLater() {
	b, err := l.conn.WaitBuffer(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crediting = false
	if err != nil {
		return // the connection is closed
	}
	if l.over || l.room() == 0 {
		l.conn.Release(b)
		return
	}
	_ = l.post(bare(b, kindCredit, 0)) // fails when the connection has ended
}

// end says that the connection has ended, and gives back what waits. If this end has broken the
// connection, end returns its own reason, and else why is the reason.
func (l *link) end(why error) (own error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		own = l.why
	}
	l.over, l.why = true, cmp.Or(l.why, why)
	for len(l.waiting) > 0 {
		l.conn.Release(l.waiting[0])
		l.unqueue(0)
	}
	return own
}
