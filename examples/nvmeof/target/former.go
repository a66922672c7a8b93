package target

import (
	"errors"
	"slices"
	"time"

	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/mem"
)

// A host that has lost a connection, or has given it up, connects anew. What it sent by the former one may still be
// on its way: a Write, say, which the host has made again since, and which would land on top of what the host wrote
// later. So before a host gets a new controller, each queue of its others shows that the host has it still, or is gone.
// Controllers of one host that are all alive stay, as those of a host with two ways to the target.
//
// That something comes shows nothing: the network may have held it. A host shows that it has a connection by what it can do
// only behind the inquiry: its transport answers a read that was posted since, of a command's data or of no bytes, or the host
// sends a command for which its queue had no entry before it got a completion that was posted since.
//
// What a host sends by controllers that it has already, nobody fences: a host that goes over from one to the other must
// wait until the target has noticed that the first one is gone.

const (
	quietTime  = 500 * time.Millisecond // after which a host that has sent no command is taken to send nothing, at first
	leastQuiet = time.Millisecond       // the same in the end
	proofTime  = time.Second            // within which a queue must answer of whose host nothing comes
	heardTime  = 4 * time.Second        // within which one must that hears its host
	farewell   = 5 * time.Second        // within which those that did not must be gone
	proofSlots = 1                      // requests of a queue beside those of its entries
)

// errSilent is why a former connection of a host was broken off.
var errSilent = errors.New("the host has connected anew, and this connection does not answer")

// inquiry is what a queue is asked.
type inquiry struct {
	what wanted

	// Of tell; each has room for what it takes.
	to    chan<- *queue // the answer
	heard chan<- *queue // the queue, when it hears its host before it can answer; nil if nobody wants to know
}

type wanted uint8

const (
	tell   wanted = iota // to answer with itself when the host has shown that it has the connection, at some time from now on
	look                 // whether the host is quiet
	depart               // to end
)

// former are the queues of a host's controllers when it connects anew.
type former struct {
	target  *Target
	queues  []*queue
	connect *command // which waits for them
	limit   limit    // of the time in which they answer, or leave
}

// formerOf are the queues of a host's controllers, but for those of discovery.
func (r *registry) formerOf(d *nvme.ConnectData) (queues []*queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for q := range r.running {
		if c := q.controller; !c.discovery && c.host == d.Host && c.hostID == d.HostID {
			queues = append(queues, q)
		}
	}
	return queues
}

// runs adds a queue that has a controller.
func (r *registry) runs(q *queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[q] = struct{}{}
}

// ran takes a queue away whose connection is closed.
func (r *registry) ran(q *queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, q)
	close(q.ended)
}

// done goes on with the Connect command.
func (f *former) done(err error) { f.connect.q.results <- result{int32(f.connect.slot), err} }

// run is the goroutine that waits until each queue has answered or is gone. It fails if that takes too long.
func (f *former) run() {
	f.limit = newLimit(proofTime)
	defer f.limit.timer.Stop()
	silent := f.ask()
	if len(silent) == 0 {
		f.done(nil)
		return
	}
	var leaving []*queue
	for _, q := range f.queues {
		if slices.ContainsFunc(silent, func(s *queue) bool { return s.controller == q.controller }) {
			q.ask(inquiry{what: depart})
			leaving = append(leaving, q)
		}
	}
	f.limit.set(farewell)
	for len(leaving) != 0 {
		select {
		case <-leaving[0].ended:
			leaving = leaving[1:]
		case <-f.limit.timer.C:
			if !f.limit.again() {
				f.done(nvme.StatusError(nvme.ConnectControllerBusy))
				return
			}
		}
	}
	f.done(nil)
}

// ask asks all queues, and returns those that are there and have not answered in time.
func (f *former) ask() (silent []*queue) {
	n := len(f.queues)
	answers, heard := make(chan *queue, n), make(chan *queue, n)
	for _, q := range f.queues {
		q.ask(inquiry{to: answers, heard: heard})
	}
	var patient []*queue // those that have longer
	waiting := slices.Clone(f.queues)
	f.limit.set(proofTime)
	for len(waiting) != 0 {
		select {
		case q := <-answers:
			answered := func(w *queue) bool { return w == q }
			waiting, silent = slices.DeleteFunc(waiting, answered), slices.DeleteFunc(silent, answered)
		case q := <-heard:
			patient = append(patient, q)
		case <-waiting[0].ended:
			waiting = waiting[1:]
		case <-f.limit.timer.C:
			if f.limit.again() {
				continue
			}
			waiting = slices.DeleteFunc(waiting, func(w *queue) bool {
				late := !slices.Contains(patient, w)
				if late {
					silent = append(silent, w)
				}
				return late
			})
			patient = nil
			f.limit.set(heardTime - proofTime)
		case <-f.target.down:
			return append(silent, waiting...)
		}
	}
	return silent
}

// ask asks a queue. It may be called from any goroutine.
func (q *queue) ask(i inquiry) {
	select {
	case q.inquiries <- i:
	case <-q.ended:
	}
}

// proofs are the inquiries that a queue has not answered. The queue's goroutine owns them.
type proofs struct {
	asked    []asked // the oldest first
	commands uint64  // that have come
	posted   uint64  // reads whose end is an event
	ended    uint64  // of these
	looking  bool    // a look is due
	quiet    uint64  // commands that had come when a look found the host quiet; 0 when it was read from since
}

// asked is an inquiry. A host that sends more commands, or answers more reads, had the connection behind it.
type asked struct {
	inquiry
	at       time.Duration
	came     uint64 // commands, and ends of reads
	commands uint64
	reads    uint64
}

// inquired takes an inquiry.
func (q *queue) inquired(i inquiry) {
	p := &q.proofs
	switch i.what {
	case tell:
		completed := p.commands - uint64(q.outstanding)
		p.asked = append(p.asked, asked{i, now(), p.commands + p.ended, completed + uint64(q.asked.Entries()), p.posted})
	case look:
		p.looking = false
	case depart:
		q.breakOff(errSilent)
	}
}

// prove answers inquiries, and goes on with what the others want. It is called after whatever the queue has handled.
func (q *queue) prove() {
	q.show()
	q.look()
}

// show answers the inquiries behind which the host had the connection.
func (q *queue) show() {
	p, n := &q.proofs, 0
	for _, a := range p.asked {
		if p.commands <= a.commands && p.ended <= a.reads {
			break
		}
		a.to <- q
		n++
	}
	p.asked = slices.Delete(p.asked, 0, n)
	for i := range p.asked {
		if a := &p.asked[i]; a.heard != nil && p.commands+p.ended != a.came {
			a.heard <- q
			a.heard = nil
		}
	}
}

// look reads no bytes if inquiries want it. A transport may answer that wrongly while it sends, so it waits until the host
// sends nothing. With time ever shorter gaps will do: a host that makes none shows by its commands that it has the connection.
func (q *queue) look() {
	p := &q.proofs
	if len(p.asked) == 0 || p.looking || p.posted != p.ended || q.in.Waiting() != 0 {
		return // or is called again
	}
	at := now()
	quiet := max(quietTime>>(2*((at-p.asked[0].at)/quietTime)), leastQuiet)
	rest := quiet - (at - q.heard)
	switch {
	case rest > 0:
	case p.quiet != p.commands: // or this process was paused, and what came meanwhile is not here yet: the next look tells
		p.quiet = p.commands
	default:
		p.quiet = 0
		p.posted++
		d := q.slots.request()
		d.Op, d.Flags, d.Cookie, d.Segment, d.Remote = hw.OpRead, hw.Default, q.proofCookie(), mem.Segment{}, mem.RemoteSegment{}
		return
	}
	p.looking = true
	time.AfterFunc(max(rest, quiet/16, leastQuiet), q.lookAgain)
}

// lookAgain may be called from any goroutine.
func (q *queue) lookAgain() { q.ask(inquiry{what: look}) }

// proofCookie is that of the read, beside those of commands.
func (q *queue) proofCookie() uint64 { return uint64(len(q.slots.commands)) }
