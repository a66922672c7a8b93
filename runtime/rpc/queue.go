package rpc

import (
	"fmt"
	"time"
)

// queue has the requests that no handler has begun, under Server.mu. Connections have turns: the next
// request is one of the connection that has the fewest with handlers, and among these of the one whose
// turn it is. So a client that asks for much waits behind itself.
type queue struct {
	turns   []*served // those with requests that wait, in turn
	waiting int
	running int // requests that the program has, or feed offers it
	offered int // of these feed's, as far as it matters
	idle    int // goroutines that wait for a request
	load    load
}

// line is the part of a connection, under Server.mu.
type line struct {
	first, last *Request
	waiting     int
	running     int
}

// mostTurns is how many connections are looked at for the next request.
const mostTurns = 64

func (q *queue) add(r *Request) {
	p := r.from
	r.waits, r.prev = true, p.line.last
	if p.line.last == nil {
		p.line.first = r
		q.turns = append(q.turns, p)
	} else {
		p.line.last.next = r
	}
	p.line.last = r
	p.line.waiting++
	q.waiting++
}

// remove takes a request out; false if it is not in the queue.
func (q *queue) remove(r *Request) bool {
	if !r.waits {
		return false
	}
	p := r.from
	if r.prev == nil {
		p.line.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		p.line.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.waits, r.next, r.prev = false, nil, nil
	p.line.waiting--
	q.waiting--
	if p.line.first == nil {
		q.endTurn(p)
	}
	return true
}

func (q *queue) endTurn(p *served) {
	for i, other := range q.turns {
		if other == p {
			copy(q.turns[i:], q.turns[i+1:])
			q.turns[len(q.turns)-1] = nil
			q.turns = q.turns[:len(q.turns)-1]
			return
		}
	}
}

// next takes out the request whose turn it is; there is one.
func (q *queue) next() *Request {
	at := 0
	for i, p := range q.turns[:min(len(q.turns), mostTurns)] {
		if p.line.running < q.turns[at].line.running {
			at = i
		}
	}
	p := q.turns[at]
	r := p.line.first
	if q.remove(r); p.line.first != nil { // to the end of the turns
		copy(q.turns[at:], q.turns[at+1:])
		q.turns[len(q.turns)-1] = p
	}
	return r
}

// wait is how long a request of a connection that comes now would wait for a handler, as the requests
// before it and the time that they take say.
func (q *queue) wait(p *served) time.Duration {
	turns := len(q.turns)
	if p.line.first == nil {
		turns++
	}
	ahead := min(q.waiting, (p.line.waiting+1)*turns) - q.idle
	return time.Duration(max(ahead, 0)+1) * q.load.all.mean / time.Duration(max(q.running-q.offered, 1))
}

// tooLate says why a request that comes now would be answered too late; "" if there is time.
func (q *queue) tooLate(r *Request, busy bool) string {
	if r.header.timeout == 0 || !busy {
		return ""
	}
	wait := q.wait(r.from)
	all := time.Duration(r.header.timeout) * time.Millisecond
	service := q.load.of(r.header.code)
	if wait+service.upper() <= all-all/16 { // a part is for the way back
		return ""
	}
	service.forget()
	return fmt.Sprintf("the server is busy: the call has %v, and would wait %v for a handler that takes about %v; %d calls wait",
		all, wait.Round(time.Millisecond), service.upper().Round(time.Microsecond), q.waiting)
}

// expired says why a request whose turn has come is not begun; "" if it is.
func (q *queue) expired(r *Request, now time.Time, busy bool) string {
	if r.header.timeout == 0 {
		return ""
	}
	left := r.deadline().Sub(now)
	if left <= 0 {
		return "its time was over before a handler began it"
	}
	service := q.load.of(r.header.code)
	if !busy || left >= service.upper() { // without others that wait it takes nothing from anybody
		return ""
	}
	service.forget()
	return fmt.Sprintf("the server is busy: the call had %v left when its turn came, and a handler takes about %v; %d calls wait",
		left.Round(time.Millisecond), service.upper().Round(time.Microsecond), q.waiting)
}

// load is how long handlers take.
type load struct {
	all     estimate
	methods [64]struct {
		number uint16
		estimate
	}
}

// of is the estimate of a method; nil of one that is not known.
func (l *load) of(method uint16) *estimate {
	m := &l.methods[int(method)%len(l.methods)]
	if m.number != method {
		return nil
	}
	return &m.estimate
}

// observe counts a request. Of the methods that share a place the last one has it.
func (l *load) observe(method uint16, took time.Duration, inTime bool) {
	if l.all.observe(took); !inTime {
		return
	}
	m := &l.methods[int(method)%len(l.methods)]
	if m.number != method {
		m.number, m.estimate = method, estimate{}
	}
	m.observe(took)
}

// estimate is a moving mean and a moving mean deviation, as those of TCP's round trips (RFC 6298).
type estimate struct{ mean, deviation time.Duration }

func (e *estimate) observe(took time.Duration) {
	if e.mean == 0 {
		e.mean, e.deviation = took, took/2
		return
	}
	off := took - e.mean
	e.mean += off / 8
	e.deviation += (max(off, -off) - e.deviation) / 4
}

// upper is what most take no longer than; 0 of nil.
func (e *estimate) upper() time.Duration {
	if e == nil {
		return 0
	}
	return e.mean + 2*e.deviation
}

// forget makes the estimate less by a little. A refusal does that, so that a method which once took
// long is tried again.
func (e *estimate) forget() {
	if e == nil {
		return
	}
	e.mean -= e.mean / 64
	e.deviation -= e.deviation / 64
}
