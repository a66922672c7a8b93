package iwarp

import (
	"fmt"
	"net"
	"time"
)

// A process that has more to do than it can, or was stopped, has its goroutines run late,
// perhaps those of a peer in the same process too: then a deadline that has passed says
// nothing of the peer. So no timer that judges a peer believes itself at once:
//
//   - A judge divides the peer's time into looks. A look that comes late does not count, and a
//     look that finds a sign of life begins the time anew. So a pause of this process costs the
//     peer nothing: what the peer has sent meanwhile is found by the look behind the pause, or
//     by the one after that.
//   - A wait that has one deadline alone gets its time again when the deadline is seen late.
//
// A sign of life is what TCP counts as one (RFC 1122 section 4.2.3.6): octets of the peer, or
// that the peer's system goes on to acknowledge what is still on its way to it. Where the system
// does not tell what it has acknowledged (traffic), the octets that the socket takes count.

// looks is the number of looks in the time of a judge.
const looks = 4

// leastLate is from which lateness on a look says nothing of the peer.
const leastLate = 500 * time.Millisecond

// isLate reports whether the end of a wait for the time d comes late, which is late ago.
func isLate(late, d time.Duration) bool { return late > max(d/4, leastLate) }

// judge counts the looks that came in time and found no sign of life.
type judge struct {
	each  time.Duration // between two looks
	since time.Time     // when the last sign of life was found, or the time began
	idle  int           // looks in a row that have found none
}

// begin begins the time, in which the looks are each apart.
func (j *judge) begin(each time.Duration) {
	*j = judge{each: each, since: time.Now()}
}

// look is a look that was due late ago, and has found a sign of life or none. It reports whether
// the time is over.
func (j *judge) look(late time.Duration, sign bool) (over bool) {
	switch {
	case sign:
		j.idle, j.since = 0, time.Now()
	case !isLate(late, j.each):
		j.idle++
	}
	return j.idle >= looks
}

// silence is for how long there has been no sign of life.
func (j *judge) silence() time.Duration { return time.Since(j.since) }

// span is a time as texts have it, and as the page of runtime/inspect has it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

// traffic is what TCP says of the octets that this end has sent, and of the peer's.
type traffic struct {
	waiting uint64 // how many are not acknowledged, or not sent yet
	passed  uint64 // how many are acknowledged, or as good as that
	came    uint64 // how many have come from the peer
	peer    heard
}

// heard is what TCP knows of the peer's system beside the octets.
type heard uint8

const (
	isUnknown heard = iota
	isThere         // it has acknowledged all that went out
	isLost          // it acknowledges nothing, though TCP has sent it again and again
)

// heardOf is what TCP knows of the peer's system now.
func heardOf(conn net.Conn) heard {
	if tcp := tcpUnder(conn); tcp != nil {
		if t, ok := trafficOf(tcp); ok {
			return t.peer
		}
	}
	return isUnknown
}

// who says where to look for the reason of a peer's silence.
func (h heard) who() string {
	switch h {
	case isThere:
		return "TCP acknowledges, so its process is stopped or stuck, or, if its page answers, something between holds all back"
	case isLost:
		return "TCP acknowledges nothing: the network between is cut, or its host is down; if its page answers, it is the network"
	case isUnknown:
	}
	return "its process is stopped or stuck, or its host or the network between is gone; if its page answers, it is the network"
}

// flow watches the octets on their way to the peer.
type flow struct{ passed uint64 }

// look reports whether octets are on their way to the peer, and whether the peer's system has taken
// more of them since the call before. Both are false if the system does not tell.
func (f *flow) look(conn net.Conn) (waiting, moves bool) {
	tcp := tcpUnder(conn)
	if tcp == nil {
		return false, false
	}
	now, ok := trafficOf(tcp)
	if !ok {
		return false, false
	}
	before := f.passed
	f.passed = now.passed
	return now.waiting > 0, now.waiting > 0 && now.passed > before
}

// moves is whether the peer's system has taken more.
func (f *flow) moves(conn net.Conn) bool {
	_, moves := f.look(conn)
	return moves
}

// stalls bounds how long the socket may take nothing of what the writer writes or waits for. Its
// link's lock guards it.
type stalls struct {
	judge
	timer   *time.Timer   // nil until the first wait
	due     time.Time     // of the next look
	on      bool          // the writer waits
	noted   bool          // flow knows what had passed in this wait
	flow    flow          // the judge's
	stalled time.Duration // for how long the socket had taken nothing when the time was over
}

// limitWrite bounds the writer's next write or wait, or removes the bound. After die the
// deadline that die has set stays.
func (l *link) limitWrite(on bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	s := &l.stalls
	s.on = on && !l.Dead
	switch {
	case !s.on && s.timer != nil:
		s.timer.Stop()
	case s.on:
		first := l.dev.set.stall / (looks * looks)
		s.begin((l.dev.set.stall - first) / looks)
		s.noted = false // most waits are over by then: they ask the system nothing
		s.next(l, first)
	}
}

// next sets when the next look is due.
func (s *stalls) next(l *link, d time.Duration) {
	s.due = time.Now().Add(d)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, l.lookAtWriter)
	} else {
		s.timer.Reset(d)
	}
}

// lookAtWriter is a look at the socket while the writer waits for it. A deadline that has passed
// ends the wait.
func (l *link) lookAtWriter() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	s := &l.stalls
	switch {
	case !s.on || l.Dead:
	case time.Now().Before(s.due): // the wait has begun anew meanwhile, and the timer too
	case !s.noted:
		s.flow.moves(l.conn)
		s.noted = true
		s.next(l, s.each)
	case s.look(time.Since(s.due), s.flow.moves(l.conn)):
		s.on, s.stalled = false, s.silence()
		_ = l.conn.SetWriteDeadline(past)
	default:
		s.next(l, s.each)
	}
}
