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
// later. So before a host gets a new controller, each queue of its others either answers or is gone. A queue answers if
// a command came by it just now, or if its host's transport answers a read of no bytes, which goes behind all that was
// sent. Controllers of one host that are all alive stay, as those of a host with two ways to the target.
//
// What a host sends by controllers that it has already, nobody fences: a host that goes over from one to the other must
// wait until the target has noticed that the first one is gone.

const (
	recent     = 500 * time.Millisecond // Config.recent
	proofTime  = time.Second            // within which a queue must answer
	farewell   = 5 * time.Second        // within which those that did not must be gone
	proofSlots = 1                      // requests of a queue beside those of its entries
)

// errSilent is why a former connection of a host was broken off.
var errSilent = errors.New("the host has connected anew, and this connection does not answer")

// inquiry is what a queue is asked: to answer with itself, or, without a channel, to end.
type inquiry struct {
	to  chan<- *queue
	now wanted
}

// wanted is how new what answers an inquiry must be.
type wanted uint8

const (
	lately wanted = iota // a command that came just now is an answer
	sign                 // what comes from now on, or a read if nothing came of late
	proof                // a read
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
			q.ask(inquiry{})
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
func (f *former) ask() []*queue {
	answers := make(chan *queue, len(f.queues))
	silent := slices.Clone(f.queues)
	for _, q := range silent {
		q.ask(inquiry{to: answers})
	}
	f.limit.set(proofTime)
	for len(silent) != 0 {
		select {
		case q := <-answers:
			silent = slices.DeleteFunc(silent, func(s *queue) bool { return s == q })
		case <-silent[0].ended:
			silent = silent[1:]
		case <-f.limit.timer.C:
			if !f.limit.again() {
				return silent
			}
		case <-f.target.down:
			return silent
		}
	}
	return nil
}

// ask asks a queue. It may be called from any goroutine.
func (q *queue) ask(i inquiry) {
	select {
	case q.inquiries <- i:
	case <-q.ended:
	}
}

// proofs are what a queue owes. The queue's goroutine owns them.
type proofs struct {
	asked []inquiry // that the read under way answers
	later []inquiry // that came behind it
	signs []inquiry // that came while others of the connection waited to be handled
	awake []inquiry // that what comes next answers
}

// idle is called when all that has come is handled: what comes next has come since.
func (p *proofs) idle() {
	if len(p.signs) != 0 {
		p.awake = append(p.awake, p.signs...)
		p.signs = p.signs[:0]
	}
}

// came is called when something came from the host.
func (q *queue) came() {
	for _, i := range q.proofs.awake {
		i.to <- q
	}
	q.proofs.awake = q.proofs.awake[:0]
}

// inquired takes an inquiry.
func (q *queue) inquired(i inquiry) {
	switch {
	case i.to == nil:
		q.breakOff(errSilent)
	case i.now == lately && now()-q.heard < q.target.cfg.recent:
		i.to <- q
	case i.now == sign && now()-q.heard < q.target.cfg.recent:
		q.proofs.signs = append(q.proofs.signs, i)
	default:
		q.proofs.later = append(q.proofs.later, i)
		q.prove()
	}
}

// prove begins a read for the inquiries that wait for one.
func (q *queue) prove() {
	p := &q.proofs
	if len(p.asked) != 0 || len(p.later) == 0 {
		return
	}
	p.asked, p.later = p.later, p.asked
	d := q.slots.request()
	d.Op, d.Flags, d.Cookie, d.Segment, d.Remote = hw.OpRead, hw.Default, q.proofCookie(), mem.Segment{}, mem.RemoteSegment{}
}

// proven takes the end of a read.
func (q *queue) proven() {
	p := &q.proofs
	for _, i := range p.asked {
		i.to <- q
	}
	p.asked = p.asked[:0]
	q.prove()
}

// proofCookie is that of the read, beside those of commands.
func (q *queue) proofCookie() uint64 { return uint64(len(q.slots.commands)) }
