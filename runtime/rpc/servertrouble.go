package rpc

import (
	"fmt"
	"strings"
	"time"

	"godat/runtime/internal/thresholds"
)

// Trouble says what is wrong with a server, if something has lasted that long: first why, as far as the server knows,
// and then what callers feel of it.
func (s ServerSnapshot) Trouble(late time.Duration) string {
	if s.closing > 0 {
		return endless(s.closing, late)
	}
	m := &s.Minute
	var list []string
	add := func(text string) {
		if text != "" {
			list = append(list, text)
		}
	}
	add(s.turnedAway())
	switch {
	case s.UntakenAge >= late:
		add(s.untaken(late))
	case s.OldestAge >= late:
		add(s.slow())
	case m.longWaits >= thresholds.FewFailures:
		add(longWaits(m, "a handler") + s.handlers())
	}
	add(s.tardiness())
	return inALine(append(list, m.hurts("this server's program", "", "; the connections work: look at what clients ask for")...))
}

// turnedAway says which connections the server has refused, and why.
func (s ServerSnapshot) turnedAway() string {
	m := &s.Minute
	var list []string
	if m.foreigners > 0 {
		list = append(list, fmt.Sprintf("%s refused%s: the last speaks %s", with(m.foreigners, "client", "was", "were"), lastMinute, m.foreign))
	}
	if m.lacked > 0 {
		list = append(list, fmt.Sprintf("%s refused%s for what this end lacks: %s", with(m.lacked, "connection", "was", "were"), lastMinute, m.lack))
	}
	if m.full > 0 {
		text := fmt.Sprintf("this server's Config.Conns allows %s at a time: %s refused%s", counted(s.places, "connection"), with(m.full, "further one", "was", "were"), lastMinute)
		if answers := m.answersThen(); 2*m.connected > answers {
			text += fmt.Sprintf("; %s made for %s, so clients connect anew for each call: let each keep its connection, or raise Config.Conns", with(m.connected, "connection", "was", "were"), counted(answers, "answer"))
		} else {
			text += "; raise Config.Conns, or close connections"
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// running are the requests that the program has taken.
func (s ServerSnapshot) running() int { return s.Requests - s.Untaken }

// untaken says why requests wait for a handler.
func (s ServerSnapshot) untaken(late time.Duration) string {
	queue := with(s.Untaken, "request", "waits", "wait") + " for a handler, the oldest for " + lasting(s.UntakenAge)
	if s.Untaken == 1 {
		queue = "1 request waits for a handler, for " + lasting(s.UntakenAge)
	}
	greedy := s.greedy()
	switch {
	case s.Workers == 0 && !s.fed:
		return "this program takes no requests, since it neither runs Serve nor reads Requests: " + queue
	case s.running() == 0 && (s.QuietAge == 0 || s.QuietAge >= late): // and not between an answer and the next request
		return "this program takes no requests: " + queue
	case s.blocked(late):
		return fmt.Sprintf("%s blocked: none has answered for %s, and the oldest request, of method %d, has been with one for %s; %s; %s",
			s.allHandlers(), lasting(s.quiet()), s.OldestMethod, lasting(s.OldestAge), queue, whatHolds)
	case s.Takes >= slowCall:
		return fmt.Sprintf("the handlers are slow: %s takes about %s, so that %s busy, and %s are answered; %s; %s",
			s.method(), lasting(s.Takes), s.allHandlers(), s.answers(), queue, whatHolds)
	case greedy != "":
		return fmt.Sprintf("one client, %s, asks for more than the handlers can do: %d of %s are its, the oldest for %s; %s busy, a request takes about %s, and %s are answered; lower its Config.Calls, or give Serve more workers",
			greedy, s.most, with(s.Untaken, "request", "that waits", "that wait"), lasting(s.UntakenAge), s.allHandlers(), lasting(s.Takes), s.answers())
	}
	return fmt.Sprintf("the handlers are too few: %s busy, a request takes about %s, and %s are answered; %s; give Serve more workers",
		s.allHandlers(), lasting(s.Takes), s.answers(), queue)
}

// whatHolds says where to look for what a handler waits for.
const whatHolds = "/debug/pprof/goroutine?debug=1 shows where handlers wait"

// quiet is how long no request has been answered, or all have been with the program.
func (s ServerSnapshot) quiet() time.Duration {
	if s.QuietAge == 0 {
		return s.OldestAge
	}
	return s.QuietAge
}

// blocked reports whether no handler has answered for much longer than a request takes.
func (s ServerSnapshot) blocked(late time.Duration) bool {
	return s.quiet() >= late && s.quiet() >= 4*s.Takes
}

// allHandlers are those that have a request, with a verb.
func (s ServerSnapshot) allHandlers() string {
	if n := max(s.running(), s.Workers); n > 1 {
		return "all " + number(n) + " handlers are"
	}
	return "the only handler is"
}

// method is what Takes is of.
func (s ServerSnapshot) method() string {
	if s.running() == 0 { // for this moment
		return "a request"
	}
	return fmt.Sprintf("method %d", s.OldestMethod)
}

// answers says how many answers are given.
func (s ServerSnapshot) answers() string {
	if s.Minute.over == 0 {
		return number(s.Minute.Answers)
	}
	return rate(s.Minute.Answers, s.Minute.over)
}

// handlers says how many there are, and what each takes.
func (s ServerSnapshot) handlers() string {
	takes := s.Takes
	if takes == 0 {
		takes = s.tardy
	}
	if takes == 0 || s.Workers == 0 {
		return ""
	}
	return fmt.Sprintf("; there are %s, and a request takes about %s", counted(s.Workers, "handler"), lasting(takes))
}

// slow says that a handler has a request for long, though none waits.
func (s ServerSnapshot) slow() string {
	has := fmt.Sprintf("it has had a request of the client %s for %s", s.OldestClient, lasting(s.OldestAge))
	switch {
	case s.Takes >= slowCall && s.OldestAge < hangs*s.Takes:
		if s.Minute.Late > 0 { // which says how slow
			return ""
		}
		return fmt.Sprintf("the handlers are slow: method %d takes about %s; %s have a request, the oldest for %s; %s", s.OldestMethod, lasting(s.Takes), number(s.running()), lasting(s.OldestAge), whatHolds)
	case s.Minute.Answers == 0, s.QuietAge >= s.OldestAge-s.OldestAge/8: // so it is not said that others go on
		return fmt.Sprintf("a handler of method %d does not return: %s, and nothing was answered meanwhile; %s", s.OldestMethod, has, whatHolds)
	}
	return fmt.Sprintf("a handler of method %d hangs: %s, while %s given within the last %s; %s", s.OldestMethod, has, with(s.Minute.Answers, "answer", "was", "were"), lasting(s.Minute.over), whatHolds)
}

// tardiness says which answers came behind the deadline, and why.
func (s ServerSnapshot) tardiness() string {
	m := &s.Minute
	if m.Late == 0 {
		return ""
	}
	deadline := ""
	if m.deadline > 0 {
		deadline = " of " + lasting(m.deadline)
	}
	text := fmt.Sprintf("%s answered behind the deadline%s%s, after about %s", with(m.Late, "call", "was", "were"), deadline, lastMinute, lasting(m.answeredIn))
	if s.UntakenAge == 0 && 2*s.tardy >= m.answeredIn {
		return fmt.Sprintf("the handlers are slower than the callers' deadline: method %d takes about %s; %s; look what it waits for, or give the calls more time", m.method, lasting(s.tardy), text)
	}
	return text
}

// greedy is the client of which nearly all requests are that wait, where others have some work done, too.
func (s ServerSnapshot) greedy() string {
	const many = 8
	if s.Conns < 2 || s.most < many || s.most*4 < s.Untaken*3 {
		return ""
	}
	return s.client
}

// Connections is the server's address where what is wrong is of connections with it: ends of connections, and peers
// that were refused, are the same trouble. It is "" otherwise. The server says why itself whom it has refused.
func (s ServerSnapshot) Connections() (address string, explained bool) {
	switch {
	case s.closing > 0:
		return "", false
	case s.Minute.full+s.Minute.foreigners+s.Minute.lacked > 0:
		return s.Address, true
	case s.Minute.Lost > 0:
		return s.Address, false
	}
	return "", false
}

// Trouble says what is wrong with a server's connection, if something has lasted that long. What its requests wait for
// the server says.
func (s servedRow) Trouble(late time.Duration) string {
	if s.WaitingAge >= late {
		return stalled(s.Waiting, "answer", "answers", "client", s.WaitingAge)
	}
	return ""
}
