package rpc

import (
	"cmp"
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
	Answers  uint64         // since the snapshot that is nearest to a minute old, or since the beginning

	over time.Duration // for which Answers are
	// last is the text of the last failure or refusal, cut behind 120 bytes, and lastAge its age.
	last    string
	lastAge time.Duration
	// longestWait is the longest time that a call has waited for a place, or a request for a handler.
	longestWait time.Duration
	longWaits   uint64 // of a second or longer
	// deadline is the longest time that a call had which missed its deadline. Of such calls answeredLate were
	// answered all the same, answeredIn on the average.
	deadline     time.Duration
	answeredLate uint64
	answeredIn   time.Duration
	method       uint16 // of the last call that missed its deadline
	// Of a server: connected are the connections that were made, full those that were refused because there
	// were Config.Conns of them, and foreigners those of peers with which it has no version of the protocol in
	// common; foreign is what the last of these speaks.
	connected, full, foreigners uint64
	foreign                     string
	// lacked are the connections that a server could not make, and lack is why the last was not made.
	lacked uint64
	lack   string
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
	kindAnsweredLate
	kindConnected
	kindFull
	kindForeign
	kindLacked
	kindOthers
)

// lately has what went wrong in the last minute. Any goroutine may call its methods; where all goes
// well nothing does.
type lately struct {
	mu    sync.Mutex
	began time.Time // the first time that a part was asked for
	parts [time.Minute / recentPart]part
	said  string // by the last failure
	at    time.Time
	marks []answersAt // of answers, the oldest first

	method  uint16 // of the last call that missed its deadline
	foreign string // what the last peer speaks with which there is no version in common
	lack    string // why the last connection could not be made
}

type part struct {
	number   int64 // see partOf
	counts   map[uint32]uint64
	longest  time.Duration // wait
	deadline time.Duration // of calls that missed it, the longest
	took     time.Duration // all calls that were answered behind their deadline
}

// answersThen is about how many of the answers came within the minute. Of more time than that, for which nobody has looked, it
// is the share of one minute.
func (m *Minute) answersThen() uint64 {
	if m.over <= time.Minute+recentPart {
		return m.Answers
	}
	return uint64(float64(m.Answers) * time.Minute.Minutes() / m.over.Minutes())
}

// unwatched reports whether nobody has looked for long, so that Answers says little of the last minute.
func (m *Minute) unwatched() bool { return m.over > 2*time.Minute }

// begin says that the end has begun.
func (l *lately) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, answersAt{time.Now(), 0})
}

type answersAt struct {
	at      time.Time
	answers uint64
}

// partOf is the number of the part of a time, counted from the first call: a clock that is set back brings no old part into
// the last minute. The caller holds mu.
func (l *lately) partOf(at time.Time) int64 {
	if l.began.IsZero() {
		l.began = at
	}
	return int64(at.Sub(l.began) / recentPart)
}

// part is the present one. The caller holds mu.
func (l *lately) part(now time.Time) *part {
	number := l.partOf(now)
	p := &l.parts[number%int64(len(l.parts))]
	if p.number != number {
		clear(p.counts)
		*p = part{number: number, counts: p.counts}
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

// missed takes note of a call that missed its deadline, and of how long it had, if that is known here.
func (l *lately) missed(method uint16, had time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.part(time.Now())
	p.counts[kindLate]++
	p.deadline = max(p.deadline, had)
	l.method = method
}

// had takes note of how long a call had that has missed its deadline.
func (l *lately) had(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.part(time.Now())
	p.deadline = max(p.deadline, d)
}

// answeredLate takes note of an answer to such a call, and of how long the call took.
func (l *lately) answeredLate(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.part(time.Now())
	p.counts[kindAnsweredLate]++
	p.took += took
}

// strange takes note of a peer with which there is no version in common.
func (l *lately) strange(speaks string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part(time.Now()).counts[kindForeign]++
	l.foreign = speaks
}

// lacks takes note of a connection that could not be made.
func (l *lately) lacks(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part(time.Now()).counts[kindLacked]++
	l.lack = why
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
	since := l.mark(now, answers)
	m.Answers, m.over = answers-since.answers, now.Sub(since.at)
	m.method, m.foreign, m.lack = l.method, l.foreign, l.lack
	counts, least := make(map[uint32]uint64), l.partOf(now)-int64(len(l.parts))
	for i := range l.parts {
		if p := &l.parts[i]; p.number > least {
			for kind, n := range p.counts {
				counts[kind] += n
			}
			m.longestWait, m.deadline = max(m.longestWait, p.longest), max(m.deadline, p.deadline)
			m.answeredIn += p.took
		}
	}
	if m.answeredLate = counts[kindAnsweredLate]; m.answeredLate > 0 {
		m.answeredIn /= time.Duration(m.answeredLate)
	}
	m.connected, m.full, m.foreigners, m.lacked = counts[kindConnected], counts[kindFull], counts[kindForeign], counts[kindLacked]
	m.CallEnds, m.Refused = CallEnds{counts[kindLate], counts[kindLeft], counts[kindLost]}, counts[kindRefused]
	m.longWaits = counts[kindLong]
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
		m.last, m.lastAge = l.said, d
	}
	return m
}

// mark is how many answers there were a minute ago, or when the end began. The caller holds mu.
func (l *lately) mark(now time.Time, answers uint64) answersAt {
	if n := len(l.marks); n == 0 || l.partOf(l.marks[n-1].at) != l.partOf(now) {
		l.marks = append(l.marks, answersAt{now, answers})
	}
	for len(l.marks) > 1 && l.partOf(l.marks[1].at) <= l.partOf(now)-int64(len(l.parts))+1 {
		l.marks = slices.Delete(l.marks, 0, 1)
	}
	return l.marks[0]
}
