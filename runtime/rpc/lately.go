package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	recentPart = 5 * time.Second
	longWait   = time.Second
	mostKinds  = 32  // of failures that are told apart
	mostSaid   = 120 // bytes of a failure's text in a snapshot
)

// The thresholds of the failures with a program's own codes, which ordinary answers may have: they are a
// trouble if so many answers of a minute are, and that share of all: less than half, so that a program half of
// whose answers fail is told at each look.
const (
	ManyFailures  = 10
	FailuresShare = 0.4

	// FewFailures of a minute with this package's own codes, and FewShare of all answers, are a trouble
	// already: no program means to answer so.
	FewFailures = 3
	FewShare    = 0.01
)

// CallEnds counts the ends of calls that are no answers. The counts only grow. A client counts
// what its callers got; a server what it did with requests.
type CallEnds struct {
	Late uint64 // the call's deadline had passed before its answer, or, at a server, when it was sent
	Left uint64 // the caller's context was canceled; a server counts those that no handler had begun
	Lost uint64 // the connection had ended before the answer, or, at a client, there was none
}

// ends is what CallEnds is read from.
type endCounts struct{ late, left, lost atomic.Uint64 }

func (e *endCounts) snapshot() CallEnds { return CallEnds{e.late.Load(), e.left.Load(), e.lost.Load()} }

func (e *CallEnds) add(o CallEnds) {
	e.Late += o.Late
	e.Left += o.Left
	e.Lost += o.Lost
}

// Minute says what went wrong with calls within the last minute, to five seconds.
type Minute struct {
	CallEnds
	Refused  uint64         // with CodeBusy or CodeDraining
	Failures []FailureCount // answers that are an [Error], by code, the most frequent first
	// Last is the text of the last failure or refusal, cut behind 120 bytes, and LastAge its age.
	Last    string
	LastAge time.Duration
	// LongestWait is the longest time that a call has waited for a place, or a request for a handler.
	LongestWait time.Duration
	LongWaits   uint64 // of a second or longer
	// Answers are the answers since the snapshot that is nearest to a minute old, or since the first.
	Answers uint64
}

// FailureCount counts the answers with a code. Codes beyond the first 32 of a time count as "others".
type FailureCount struct {
	Code  string // as [CodeText] has it
	Count uint64
	own   bool // of the program
}

// String says what went wrong; it is empty if nothing did.
func (m Minute) String() string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{m.Late, "late"}, {m.Left, "left"}, {m.Lost, "lost"}, {m.Refused, "refused"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(append(parts, codesOf(m.Failures)...), ", ")
}

func codesOf(all []FailureCount) (parts []string) {
	for _, f := range all {
		parts = append(parts, fmt.Sprintf("%d %s", f.Count, f.Code))
	}
	return parts
}

// What lately counts beside codes of failures.
const (
	kindLate uint32 = 1<<16 + iota
	kindLeft
	kindLost
	kindRefused
	kindLong
	kindOthers
)

// lately has what went wrong in the last minute. Any goroutine may call its methods; where all goes
// well nothing does.
type lately struct {
	mu    sync.Mutex
	parts [time.Minute / recentPart]part
	said  string // by the last failure
	at    time.Time
	marks []answersAt // of answers, the oldest first
}

type part struct {
	number  int64 // since 1970
	counts  map[uint32]uint64
	longest time.Duration
}

type answersAt struct {
	at      time.Time
	answers uint64
}

// part is the present one. The caller holds mu.
func (l *lately) part(now time.Time) *part {
	number := now.UnixNano() / int64(recentPart)
	p := &l.parts[number%int64(len(l.parts))]
	if p.number != number {
		clear(p.counts)
		p.number, p.longest = number, 0
	}
	if p.counts == nil {
		p.counts = make(map[uint32]uint64)
	}
	return p
}

// count counts something of a kind; text is what a failure says.
func (l *lately) count(kind uint32, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	p := l.part(now)
	if _, known := p.counts[kind]; !known && len(p.counts) >= mostKinds && kind < kindLate {
		kind = kindOthers
	}
	p.counts[kind]++
	if text != "" {
		l.said, l.at = strings.ToValidUTF8(text[:min(len(text), mostSaid)], ""), now
	}
}

// waited takes note of a wait for a place or a handler.
func (l *lately) waited(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.part(time.Now())
	p.longest = max(p.longest, d)
	if d >= longWait {
		p.counts[kindLong]++
	}
}

// snapshot is the last minute, of an end that has counted so many answers.
func (l *lately) snapshot(answers uint64) (m Minute) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	m.Answers = answers - l.mark(now, answers)
	counts, least := make(map[uint32]uint64), now.UnixNano()/int64(recentPart)-int64(len(l.parts))
	for i := range l.parts {
		if p := &l.parts[i]; p.number > least {
			for kind, n := range p.counts {
				counts[kind] += n
			}
			m.LongestWait = max(m.LongestWait, p.longest)
		}
	}
	m.CallEnds, m.Refused = CallEnds{counts[kindLate], counts[kindLeft], counts[kindLost]}, counts[kindRefused]
	m.LongWaits = counts[kindLong]
	for kind, n := range counts {
		switch {
		case kind == kindOthers:
			m.Failures = append(m.Failures, FailureCount{"others", n, true})
		case kind < kindLate:
			m.Failures = append(m.Failures, FailureCount{CodeText(uint16(kind)), n, uint16(kind) >= CodeUser})
		}
	}
	slices.SortFunc(m.Failures, func(a, b FailureCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code))
	})
	if d := now.Sub(l.at); l.said != "" && d < time.Minute {
		m.Last, m.LastAge = l.said, d
	}
	return m
}

// mark is how many answers there were a minute ago, or since when snapshots were taken. The caller holds mu.
func (l *lately) mark(now time.Time, answers uint64) uint64 {
	if n := len(l.marks); n == 0 || now.Sub(l.marks[n-1].at) >= recentPart {
		if n == 0 {
			l.marks = append(l.marks, answersAt{now, 0}) // all that came before it
		} else {
			l.marks = append(l.marks, answersAt{now, answers})
		}
	}
	for len(l.marks) > 1 && now.Sub(l.marks[1].at) >= time.Minute {
		l.marks = slices.Delete(l.marks, 0, 1)
	}
	return l.marks[0].answers
}

// countCall is makeCall, whose end it counts.
func (c *Client) countCall(ctx context.Context, call Call, dst []byte) ([]byte, error) {
	got, err := c.makeCall(ctx, call, dst)
	if err != nil && ctx != nil {
		c.noteEnd(ctx, call.Method, err)
	}
	return got, err
}

// noteEnd counts how a call of the program's ended that was not answered without a failure.
func (c *Client) noteEnd(ctx context.Context, method uint16, err error) {
	none, unanswered := errors.AsType[*CallError](err)
	said, failed := errors.AsType[*Error](err)
	switch {
	case !unanswered && failed:
		c.lately.count(uint32(said.Code), said.Text)
	case !unanswered: // the call was not one
	case errors.Is(none.Err, context.DeadlineExceeded), ctx.Err() == context.DeadlineExceeded: //nolint:errorlint // of Err
		c.ends.late.Add(1)
		c.methods.known(method).ends.late.Add(1)
		c.lately.count(kindLate, "")
	case ctx.Err() != nil:
		c.ends.left.Add(1)
		c.methods.known(method).ends.left.Add(1)
		c.lately.count(kindLeft, "")
	case failed:
		c.lately.count(kindRefused, said.Text)
	default:
		c.ends.lost.Add(1)
		c.methods.known(method).ends.lost.Add(1)
		c.lately.count(kindLost, "")
	}
}

// noteFailure counts an answer of a server's that is a failure, or that came when the call was over; gone says that the
// connection was.
func (s *Server) noteFailure(r *Request, code uint16, text string, over error, gone bool) {
	if code != 0 {
		s.lately.count(uint32(code), text)
	}
	switch {
	case errors.Is(over, context.DeadlineExceeded):
		s.ends.late.Add(1)
		s.counts(r, code).ends.late.Add(1)
		s.lately.count(kindLate, "")
	case gone:
		s.ends.lost.Add(1)
		s.counts(r, code).ends.lost.Add(1)
		s.lately.count(kindLost, "")
	}
}

// hurts says what callers feel, the worst first. tardy says how the end tells late calls, and waits who waits.
func (m *Minute) hurts(tardy, waits string) (list []string) {
	if m.Late > 0 {
		list = append(list, fmt.Sprintf("%s within the last minute", fmt.Sprintf(tardy, counted(m.Late, "call"))))
	}
	if waits != "" {
		list = append(list, waits)
	} else if m.LongWaits >= FewFailures {
		list = append(list, fmt.Sprintf("%d calls waited a second or longer for their turn within the last minute, one of them %s", m.LongWaits, lasting(m.LongestWait)))
	}
	if m.Lost > 0 {
		list = append(list, counted(m.Lost, "call")+" lost the connection within the last minute")
	}
	said := ""
	if m.Last != "" {
		said = fmt.Sprintf(", the last %s ago: %q", lasting(m.LastAge), m.Last)
	}
	if m.Refused > 0 {
		list = append(list, fmt.Sprintf("%s refused within the last minute%s", counted(m.Refused, "call"), said))
	}
	if m.fails() {
		list = append(list, fmt.Sprintf("answers of the last minute are errors: %s%s", strings.Join(codesOf(m.Failures), ", "), said))
	}
	return list
}

// fails reports whether failures are a trouble: those with this package's codes soon, those with the
// program's own if they are a large share of the answers.
func (m *Minute) fails() bool {
	var ours, all uint64
	for _, f := range m.Failures {
		if all += f.Count; !f.own {
			ours += f.Count
		}
	}
	return ours >= FewFailures && float64(ours) >= FewShare*float64(m.Answers) || all >= ManyFailures && float64(all) >= FailuresShare*float64(m.Answers)
}

func counted(n uint64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
