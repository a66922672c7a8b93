package rpc

import (
	"fmt"
	"strings"
	"time"

	"godat/runtime/internal/thresholds"
)

const (
	// slowCall is from which time on a call takes long, and not only too many are made at a time.
	slowCall = 500 * time.Millisecond
	// hangs is how many times as long as others a call has taken that hangs.
	hangs = 10

	lastMinute = " within the last minute"
)

// Trouble says what is wrong with a client, if something has lasted that long: first why, as far as the client
// knows, and then what callers feel of it.
func (s ClientSnapshot) Trouble(late time.Duration) string {
	if s.closing > 0 {
		return endless(s.closing, late)
	}
	m := &s.Minute
	list := s.down()
	if s.Down == "" && s.WaitingAge >= late {
		list = append(list, stalled(s.Waiting, "call or cancel", "calls or cancels", "server", s.WaitingAge))
	}
	switch {
	case m.Late > 0:
		list = append(list, s.tardy(late))
	case s.Down == "" && s.OldestAge >= late && s.WaitingAge < late:
		list = append(list, s.unanswered())
	}
	if waits := s.waits(late); waits != "" {
		list = append(list, waits)
	}
	return inALine(append(list, m.hurts("the server's program", " of its own host", "; the connections work: look at what this client asks for")...))
}

// inALine joins what is wrong into a line that can be read at a glance: the first, what fits behind it, and how many more
// there are.
func inALine(list []string) (text string) {
	left := 0
	for i, more := range list {
		switch {
		case i == 0:
			text = more
		case len(text)+len(more) <= lineLength:
			text += "; " + more
		default:
			left++
		}
	}
	if left > 0 {
		text += "; and " + counted(left, "further trouble")
	}
	return text
}

// lineLength is the most octets that the text of several troubles has.
const lineLength = 240

// down says why there is no connection.
func (s ClientSnapshot) down() []string {
	switch {
	case s.Down == "":
		return nil
	case s.Attempts == 0:
		return []string{"no connection: " + s.Down}
	case strings.HasPrefix(s.Down, serverSpeaks):
		return []string{fmt.Sprintf("%s (no connection after %s)", s.Down, counted(s.Attempts, "failed attempt"))}
	}
	return []string{fmt.Sprintf("no connection after %s: %s", counted(s.Attempts, "failed attempt"), s.Down)}
}

// tardy says how many calls missed their deadline, and why, as the answers show.
func (s ClientSnapshot) tardy(late time.Duration) string {
	m := &s.Minute
	missed := counted(m.Late, "call") + " missed the deadline"
	if m.deadline > 0 {
		missed += " of " + lasting(m.deadline)
	}
	missed += lastMinute
	switch {
	case s.Down != "", s.WaitingAge >= late: // which says why
		return missed
	case m.answeredLate > 0:
		return fmt.Sprintf("the server answers too late, after about %s: %s; look at its page why method %d takes so long, or give the calls more time", lasting(m.answeredIn), missed, m.method)
	case m.Answers == 0:
		return "no answer comes from the server: " + missed + "; its page says whether its handlers are blocked, or its program takes no requests"
	case m.unwatched():
		return missed
	}
	return fmt.Sprintf("%s, while %s came", missed, counted(m.Answers, "answer"))
}

// takes is how long a call takes, as the answers of the last minute say: on the average so many were under way. It is
// 0 where that is not known.
func (s ClientSnapshot) takes() time.Duration {
	if s.Minute.Answers == 0 || s.Minute.over == 0 {
		return 0
	}
	return s.Minute.over * time.Duration(max(s.Calls, 1)) / time.Duration(s.Minute.Answers)
}

// unanswered says why calls wait for answers.
func (s ClientSnapshot) unanswered() string {
	waits := fmt.Sprintf("%d calls wait for answers, the oldest, of method %d, for %s", s.Calls, s.OldestMethod, lasting(s.OldestAge))
	if s.Calls == 1 {
		waits = fmt.Sprintf("1 call, of method %d, has waited %s for its answer", s.OldestMethod, lasting(s.OldestAge))
	}
	answers, takes := counted(s.Minute.Answers, "answer"), s.takes()
	switch {
	case takes == 0:
		return fmt.Sprintf("no answer comes from the server: %s; its page says whether its handlers are blocked, or its program takes no requests", waits)
	case s.OldestAge >= hangs*takes:
		return fmt.Sprintf("a handler of method %d hangs at the server, or all of the server has stopped since: %s, while %s came within the last %s; look at the server's page", s.OldestMethod, waits, answers, lasting(s.Minute.over))
	}
	return fmt.Sprintf("the server works, but too slowly for so many calls: %s, while %s came within the last %s, so that each takes about %s; look at the server's page", waits, answers, lasting(s.Minute.over), lasting(takes))
}

// waits says who waits for a place or a connection, and why.
func (s ClientSnapshot) waits(late time.Duration) string {
	m := &s.Minute
	switch {
	case s.CallersAge >= late && s.Down != "":
		return fmt.Sprintf("%s for a connection, the first for %s", with(s.Callers, "caller", "waits", "wait"), lasting(s.CallersAge))
	case s.CallersAge >= late:
		return fmt.Sprintf("%s: %s for a place, the first for %s%s", s.places(), with(s.Callers, "caller", "waits", "wait"), lasting(s.CallersAge), s.morePlaces())
	case m.longWaits >= thresholds.FewFailures && s.Down != "":
		return longWaits(m, "a place or a connection")
	case m.longWaits >= thresholds.FewFailures:
		return longWaits(m, "a place or a connection") + "; " + s.places()
	}
	return ""
}

func longWaits(m *Minute, what string) string {
	return fmt.Sprintf("%s waited a second or longer for %s within the last minute, one of them %s", counted(m.longWaits, "call"), what, lasting(m.longestWait))
}

// places says how many calls there may be at a time, who says so, and how long each takes.
func (s ClientSnapshot) places() string {
	whose := "this client's Config.Calls"
	switch {
	case s.serverCalls < s.ownCalls:
		whose = "the server's Config.Calls"
	case s.serverCalls == s.ownCalls:
		whose = "Config.Calls of both ends"
	}
	text := fmt.Sprintf("%s allows %s at a time", whose, counted(s.Of, "call"))
	if takes := s.takes(); takes > 0 {
		text += fmt.Sprintf(", and a call takes about %s, so %s are made", lasting(takes), rate(s.Minute.Answers, s.Minute.over))
	}
	return text
}

// morePlaces says what to do for callers that wait for a place.
func (s ClientSnapshot) morePlaces() string {
	if s.takes() >= slowCall {
		return "; the server's page says why calls take so long"
	}
	return "; raise Config.Calls"
}

// Misses is the server's address where no more is wrong than that its connection has ended, which no caller has felt:
// another line may say why. It is "" otherwise.
func (s ClientSnapshot) Misses() string {
	if s.closing > 0 || s.Down == "" || s.Attempts > 0 || s.Callers > 0 || s.Minute.hurt() {
		return ""
	}
	return s.Server
}

// Connections is the server's address where what is wrong is of connections with it: ends of connections, and attempts
// that have failed, are the same trouble. It is "" otherwise. The client says why itself where it has no connection.
func (s ClientSnapshot) Connections() (address string, explained bool) {
	switch {
	case s.closing > 0:
		return "", false
	case s.Down != "" && s.Attempts > 0:
		return s.Server, true
	case s.Minute.Lost > 0:
		return s.Server, false
	}
	return "", false
}

// hurt reports whether callers have felt something within the last minute.
func (m *Minute) hurt() bool {
	return m.Late+m.Lost+m.Refused > 0 || m.longWaits >= thresholds.FewFailures || m.fails()
}

// hurts says what callers got in place of answers: what was lost and refused, and errors of the program who answers. Of
// what it could not do it speaks of host; advice is for those who ask for what it does not have.
func (m *Minute) hurts(who, host, advice string) (list []string) {
	if m.Lost > 0 {
		list = append(list, counted(m.Lost, "call")+" lost the connection within the last minute")
	}
	if m.Refused > 0 {
		list = append(list, fmt.Sprintf("%s refused within the last minute%s", with(m.Refused, "call", "was", "were"), m.lastSaid("the server said")))
	}
	if m.fails() {
		list = append(list, m.errors(who, host, advice))
	}
	return list
}

// lastSaid is the text of the last failure or refusal, with its age, and who said so.
func (m *Minute) lastSaid(who string) string {
	if m.last == "" {
		return ""
	}
	return fmt.Sprintf("; the last time, %s ago, %s: %q", lasting(m.lastAge), who, m.last)
}

// errors says which answers are errors: of a program that says so of what it was asked, or of one that could not do it.
func (m *Minute) errors(who, host, advice string) string {
	ours, all := m.failures()
	text := fmt.Sprintf("%s of %s of the last minute are errors", number(all), counted(max(m.Answers, all), "answer"))
	switch {
	case m.unwatched():
		text = counted(all, "answer") + " of the last minute are errors"
	case all >= m.Answers:
		text = "all " + counted(all, "answer") + " of the last minute are errors"
	}
	codes := strings.Join(codesOf(m.Failures), ", ")
	if 2*ours >= all {
		return fmt.Sprintf("%s fails: %s (%s)%s", who, text, codes, m.lastSaid("it said"+host))
	}
	return fmt.Sprintf("%s says no: %s of the application's own (%s)%s%s", who, text, codes, m.lastSaid("it said"), advice)
}

// failures are how many answers have codes of this package, and how many codes at all.
func (m *Minute) failures() (ours, all uint64) {
	for _, f := range m.Failures {
		if all += f.Count; !f.own {
			ours += f.Count
		}
	}
	return ours, all
}

// fails reports whether failures are a trouble: those with this package's codes soon, those with the
// program's own if they are a large share of the answers.
func (m *Minute) fails() bool {
	ours, all := m.failures()
	answers := float64(max(m.answersThen(), all))
	return ours >= thresholds.FewFailures && float64(ours) >= thresholds.FewShare*answers || all >= thresholds.ManyFailures && float64(all) >= thresholds.FailuresShare*answers
}
