package model

import "slices"

// Streams are the streams of an event dispatcher by name, from DAT_EVD_FLAGS.
var Streams = map[string]int{
	"SOFTWARE": 0x001, "CR": 0x010, "DTO": 0x020, "CONN": 0x040, "RMR": 0x080, "ASYNC": 0x100,
}

const (
	streamSoftware = 0x001
	streamCR       = 0x010
	streamDTO      = 0x020
	streamConn     = 0x040
	streamRMR      = 0x080
)

// Event numbers.
const (
	dtoCompletion         = 0x00001
	bindCompletion        = 0x01001
	connectionRequest     = 0x02001
	established           = 0x04001
	peerRejected          = 0x04002
	nonPeerRejected       = 0x04003
	acceptCompletionError = 0x04004
	disconnected          = 0x04005
	broken                = 0x04006
	unreachable           = 0x04008
	asyncEPBroken         = 0x08003
	softwareEvent         = 0x10001
	ibDTOEvent            = 0x40000
)

var eventNames = map[int]string{
	dtoCompletion: "DTO_COMPLETION", connectionRequest: "CONNECTION_REQUEST", established: "ESTABLISHED",
	peerRejected: "PEER_REJECTED", nonPeerRejected: "NON_PEER_REJECTED",
	acceptCompletionError: "ACCEPT_COMPLETION_ERROR", disconnected: "DISCONNECTED", broken: "BROKEN",
	unreachable: "UNREACHABLE", softwareEvent: "SOFTWARE", ibDTOEvent: "IB_DTO",
}

// evd is an event dispatcher. Its methods accept a nil one, to which nothing goes.
type evd struct {
	handle
	w                    *World
	qlen                 int
	maxLen               int
	takes                int
	cno                  *cno
	disabled, unwaitable bool
	shots                bool // it has had one-shots
	waiter               *waiter
	queue                []queued // in the order in which the events were caused
}

// queued is an event that a dispatcher holds.
type queued struct {
	want   Event
	any    bool   // any status but success is right
	silent bool   // it does not notify
	stream string // events of one stream keep their order
	of     string // the endpoint; its connection events keep their order with all its other events
	conn   bool
	step   int
	cr     *cr
}

func (w *World) newEVD(c *call) {
	d := &evd{w: w, handle: handle{c.On, true}, qlen: c.Int("qlen"), maxLen: c.Int("max"), takes: c.Bits("streams", Streams)}
	if d.maxLen == 0 {
		d.maxLen = 1 << 20 // without a limit it grows
	}
	d.maxLen = max(d.maxLen, d.qlen)
	c.refuse(d.qlen < 1, invalidParameter)
	w.evds.add(c, d)
}

func (d *evd) free(c *call) {
	c.refuse(d.waiter != nil, invalidState|subWaiter)
	if d.handle.free(c, d.fed(), invalidState|subEVDInUse) {
		d.leaveCNO()
		d.queue = nil
	}
}

func (d *evd) query(c *call) {
	c.expect("qlen", d.qlen, "streams", d.takes)
}

func (d *evd) resize(c *call) {
	n := c.Int("qlen")
	c.refuse(n < 1, invalidParameter)
	c.refuse(n > d.maxLen, insufficientResources)
	c.refuse(n < d.placed(), invalidState)
	c.mayRefuse(d.waiter != nil && n < d.waiter.threshold, invalidState|subWaiter) // if the wait sleeps already
	if c.succeeded() {
		d.qlen = n
	}
}

// classes returns the classes of everything that feeds the dispatcher; see [classOf].
// The parameters of the endpoint but do not count.
func (d *evd) classes(but *endpoint) (all []int) {
	for _, p := range d.w.eps.live() {
		feeds := p.owed
		if p != but {
			feeds = append(p.feeds(), p.owed...)
		}
		for _, f := range feeds {
			if f.to == d {
				all = append(all, f.class)
			}
		}
	}
	if d.w.points.count(func(s *point) bool { return s.to == d }) > 0 {
		all = append(all, 0)
	}
	return all
}

func (d *evd) fed() bool { return len(d.classes(nil)) > 0 }

// fits reports whether all feeds of the dispatcher are of a class. The parameters of
// the endpoint but do not count.
func (d *evd) fits(class int, but *endpoint) bool {
	return !slices.ContainsFunc(d.classes(but), func(other int) bool { return other != class })
}

// placed counts the queued events that take a place. Connection requests do not:
// they bring their own.
func (d *evd) placed() (n int) {
	for i := range d.queue {
		n += number(d.queue[i].cr == nil)
	}
	return n
}

// room returns how many places of a dispatcher are free: at least, while suppressed
// requests hold theirs, and at most, when they have given theirs back.
func (d *evd) room() (least, most int) {
	most = d.qlen - d.placed()
	unsure := 0
	for _, p := range d.w.eps.live() {
		most -= p.awaits(d)
		if p.req == d {
			unsure += p.uncertain()
		}
	}
	for _, q := range d.w.srqs.live() {
		if slices.Contains(q.sinks(), d) {
			most -= len(q.recvs)
		}
	}
	return most - unsure, most
}

// refuse refuses a call that needs n places.
func (d *evd) refuse(c *call, n int) {
	if d == nil || n == 0 {
		return
	}
	least, most := d.room()
	c.refuse(most < n, insufficientResources)
	c.mayRefuse(least < n, insufficientResources)
	if least < n && len(d.queue) > 0 {
		d.trigger(false) // a call that finds no room may wake the consumer
	}
}

// put queues an event.
func (d *evd) put(q queued) {
	if d == nil {
		return
	}
	q.step = d.w.step
	d.queue = append(d.queue, q)
	if !q.silent {
		d.trigger(true)
	}
	d.waiter.arrived(len(d.queue), q.silent)
}

func (d *evd) postSE(c *call) {
	least, most := d.room()
	c.refuse(d.takes&streamSoftware == 0, invalidParameter)
	c.refuse(most < 1, queueFull)
	c.mayRefuse(least < 1, queueFull)
	if least < 1 {
		d.trigger(false)
	}
	if c.succeeded() {
		d.put(queued{want: Event{Number: softwareEvent, Cookie: c.Int("data")}, stream: "software"})
	}
}

// dequeue judges a dequeue of up to n events.
func (d *evd) dequeue(c *call) {
	c.refuse(d.waiter != nil, invalidState|subWaiter)
	if !c.succeeded() {
		return
	}
	if want := min(c.Int("n"), len(d.queue)); len(c.Events) != want {
		c.failf("%d events %v, should be %d: %v", len(c.Events), c.Events, want, d.heads())
	}
	d.takeAll(c)
}

// takeAll removes the events that a call returned, in their order.
func (d *evd) takeAll(c *call) {
	for _, e := range c.Events {
		d.take(c, e)
	}
}

// take removes an event from the queue, if it is one that may come next.
func (d *evd) take(c *call, got Event) {
	for i, q := range d.queue {
		if !d.mayCome(i) || !q.matches(got) {
			continue
		}
		d.queue = append(d.queue[:i:i], d.queue[i+1:]...)
		if q.cr != nil {
			q.cr.dequeued(c, got)
		}
		return
	}
	c.failf("event %v, should be one of %v", got, d.heads())
}

// mayCome reports whether event i may come next. No event of its stream may be
// before it, and no event of its endpoint if one of the two is a connection event.
// No event that an earlier command caused may be before it either, except that a
// connection request and any other event have no order.
func (d *evd) mayCome(i int) bool {
	q := &d.queue[i]
	for j := range d.queue[:i] {
		p := &d.queue[j]
		earlier := p.step < q.step && (p.cr == nil) == (q.cr == nil)
		if p.stream == q.stream || p.of != "" && p.of == q.of && (p.conn || q.conn) || earlier {
			return false
		}
	}
	return true
}

func (q *queued) matches(got Event) bool {
	want := q.want
	got.Handle, got.Attr = nil, nil
	if q.any && got.Status != 0 {
		got.Status = want.Status
	}
	return want == got
}

// heads returns the events that may come next.
func (d *evd) heads() (events []Event) {
	for i := range d.queue {
		if d.mayCome(i) {
			events = append(events, d.queue[i].want)
		}
	}
	return events
}
