package model

import "fmt"

// Streams are the streams of an event dispatcher by name, from DAT_EVD_FLAGS.
var Streams = map[string]int{
	"SOFTWARE": 0x001, "CR": 0x010, "DTO": 0x020, "CONN": 0x040, "RMR": 0x080, "ASYNC": 0x100,
}

const (
	streamSoftware = 0x001
	streamCR       = 0x010
	streamDTO      = 0x020
	streamConn     = 0x040
)

// Event numbers.
const (
	dtoCompletion         = 0x00001
	connectionRequest     = 0x02001
	established           = 0x04001
	peerRejected          = 0x04002
	nonPeerRejected       = 0x04003
	acceptCompletionError = 0x04004
	disconnected          = 0x04005
	broken                = 0x04006
	unreachable           = 0x04008
	softwareEvent         = 0x10001
	ibDTOEvent            = 0x40000
)

var eventNames = map[int]string{
	dtoCompletion: "DTO_COMPLETION", connectionRequest: "CONNECTION_REQUEST", established: "ESTABLISHED",
	peerRejected: "PEER_REJECTED", nonPeerRejected: "NON_PEER_REJECTED",
	acceptCompletionError: "ACCEPT_COMPLETION_ERROR", disconnected: "DISCONNECTED", broken: "BROKEN",
	unreachable: "UNREACHABLE", softwareEvent: "SOFTWARE", ibDTOEvent: "IB_DTO",
}

// Flags of an [Event].
const (
	Solicited = 1 << iota // the send asked for a notification
	HasImm                // Imm means something
)

type evd struct {
	open                 bool
	qlen                 int
	maxLen               int
	takes                int
	feeds                int
	class                int // the class of everything that feeds it; see classOf
	cno                  *cno
	disabled, unwaitable bool
	shots                bool // it has had one-shots
	awaited              int  // room reserved for events that will come or free it
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

func (w *World) evd(name string) *evd { return object(w.evds, 'e', name) }

func (w *World) newEVD(c Command, r Result) error {
	d := &evd{qlen: c.Int("qlen"), maxLen: c.Int("max"), takes: c.Bits("streams", Streams)}
	if d.maxLen == 0 {
		d.maxLen = 1 << 20 // without a limit it grows
	}
	d.maxLen = max(d.maxLen, d.qlen)
	w.evds = append(w.evds, nil)
	var v verdict
	v.when(d.qlen < 1, invalidParameter)
	ok, err := v.judge(r.Code)
	if ok {
		d.open = true
		w.evds[len(w.evds)-1] = d
	}
	return err
}

func (w *World) freeEVD(c Command, r Result) error {
	d := w.evd(c.On)
	var v verdict
	v.when(d == nil, invalidHandle)
	v.when(d != nil && d.open && d.feeds > 0, invalidState|subEVDInUse)
	v.when(d != nil && d.waiter != nil, invalidState|subWaiter)
	ok, err := v.judge(r.Code)
	if ok {
		d.part()
		d.open, d.queue = false, nil
	}
	return err
}

func (w *World) queryEVD(c Command, r Result) error {
	d := w.evd(c.On)
	v := d.usable()
	v.when(c.Text("mask") == "bad", invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("qlen", d.qlen, "streams", d.takes)
}

func (w *World) resizeEVD(c Command, r Result) error {
	d, n := w.evd(c.On), c.Int("qlen")
	v := d.usable()
	v.when(n < 1, invalidParameter)
	v.when(d != nil && n > d.maxLen, insufficientResources)
	v.when(d != nil && n < d.placed(), invalidState)
	v.perhaps(d != nil && d.waiter != nil && n < d.waiter.threshold, invalidState|subWaiter) // if the wait sleeps already
	ok, err := v.judge(r.Code)
	if ok {
		d.qlen = n
	}
	return err
}

func (d *evd) usable() (v verdict) {
	v.when(d == nil || !d.open, invalidHandle)
	return v
}

// free returns the room of a dispatcher: at least that which is certainly free, and
// at most that which is free when suppressed requests have given back theirs.
func (w *World) free(d *evd) (least, most int) {
	most = d.qlen - d.awaited - d.placed()
	return most - w.unsure(d), most
}

// placed counts the queued events that take a place. Connection requests do not:
// they bring their own.
func (d *evd) placed() (n int) {
	if d == nil {
		return 0
	}
	for i := range d.queue {
		if d.queue[i].cr == nil {
			n++
		}
	}
	return n
}

// unsure counts the places that suppressed requests may still hold; see the
// endpoint's unsure.
func (w *World) unsure(d *evd) (n int) {
	for _, p := range w.eps {
		if p != nil && p.request == d {
			n += p.unsure()
		}
	}
	return n
}

// room adds the codes that a call which needs n places may fail with.
func (w *World) room(v *verdict, d *evd, n int) {
	if d == nil || n == 0 {
		return
	}
	least, most := w.free(d)
	v.when(most < n, insufficientResources)
	v.perhaps(least < n, insufficientResources)
	if least < n && len(d.queue) > 0 {
		w.trigger(d, false) // a call that finds no room may wake the consumer
	}
}

// put queues an event for which a place was reserved.
func (w *World) put(d *evd, q queued) {
	if d == nil {
		return
	}
	d.awaited--
	q.step = w.step
	d.queue = append(d.queue, q)
	if !q.silent {
		w.trigger(d, true)
	}
	d.wake(q.silent)
}

func (w *World) postSE(c Command, r Result) error {
	d := w.evd(c.On)
	v := d.usable()
	if d != nil {
		v.when(d.takes&streamSoftware == 0, invalidParameter)
		least, most := w.free(d)
		v.when(most < 1, queueFull)
		v.perhaps(least < 1, queueFull)
		if least < 1 {
			w.trigger(d, false)
		}
	}
	ok, err := v.judge(r.Code)
	if ok {
		d.awaited++
		w.put(d, queued{want: Event{Number: softwareEvent, Cookie: c.Int("data")}, stream: "software"})
	}
	return err
}

// dequeue judges a dequeue of up to n events.
func (w *World) dequeue(c Command, r Result) error {
	d := w.evd(c.On)
	v := d.usable()
	v.when(d != nil && d.waiter != nil, invalidState|subWaiter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	if want := min(c.Int("n"), len(d.queue)); len(r.Events) != want {
		return fmt.Errorf("%d events %v, should be %d: %s", len(r.Events), r.Events, want, d.heads())
	}
	return w.takeAll(d, r.Events)
}

// wait judges a wait that looks once.
func (w *World) wait(c Command, r Result) error {
	d, t := w.evd(c.On), c.Int("threshold")
	v := d.usable()
	w.refuseWait(&v, d, t)
	v.when(d != nil && len(d.queue) < t, timeoutExpired)
	ok, err := v.judge(r.Code)
	switch {
	case err != nil:
		return err
	case ok:
		if err := w.takeAll(d, r.Events); err != nil {
			return err
		}
		fallthrough
	case r.Code == timeoutExpired:
		return r.check("nmore", len(d.queue))
	}
	return nil
}

// takeAll removes events that were dequeued, in the order given.
func (w *World) takeAll(d *evd, events []Event) error {
	for _, e := range events {
		if err := w.take(d, e); err != nil {
			return err
		}
	}
	return nil
}

// Pending returns how many events a dispatcher should hold.
func (w *World) Pending(index int) int { return len(w.evds[index].queue) }

// take removes an event from the queue, if it is one that may come next.
func (w *World) take(d *evd, got Event) error {
	for i, q := range d.queue {
		if !d.mayCome(i, w.limits.InOrder) || !q.matches(got) {
			continue
		}
		d.queue = append(d.queue[:i:i], d.queue[i+1:]...)
		if q.cr != nil {
			return w.see(q.cr, got)
		}
		return nil
	}
	return fmt.Errorf("event %v, should be one of %s", got, d.heads())
}

// mayCome reports whether event i may come next. No event of its stream may be
// before it, and no event of its endpoint if one of the two is a connection event.
// With inOrder, no event that an earlier command caused may be before it either,
// except that a connection request and any other event have no order.
func (d *evd) mayCome(i int, inOrder bool) bool {
	q := &d.queue[i]
	for j := range d.queue[:i] {
		p := &d.queue[j]
		earlier := inOrder && p.step < q.step && (p.cr == nil) == (q.cr == nil)
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

func (d *evd) heads() (text string) {
	for i := range d.queue {
		if d.mayCome(i, false) {
			text += " " + d.queue[i].want.String()
		}
	}
	if text == "" {
		return "none"
	}
	return text
}
