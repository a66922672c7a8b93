package posts

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"godat/check/world/program"
	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// desk is the two accounts of a link without the library: the test makes the events
// that the library would deliver.
type desk struct {
	t     *testing.T
	w     *world
	link  *link
	life  *life
	sides [2]*account
	main  *consumer // the consumer of all events of side 0
	far   *consumer
	kinds []Kind // of the complaints so far
}

func newDesk(t *testing.T) *desk {
	w := &world{World: program.Over(1, nil, nil), cfg: &Posts{Patience: time.Millisecond}}
	d := &desk{t: t, w: w, link: &link{w: w}}
	w.books.wrong = func(_ string, args ...any) { d.kinds = append(d.kinds, args[0].(Kind)) }
	for s := range d.sides {
		a := &account{books: &w.books, w: w, home: &home{name: "here"}}
		a.id = w.books.ids.Add(1)
		a.ep = new(ep.Endpoint) // only its address is used
		w.books.known(a)
		h := &consumedDispatcher{w: w, dispatcherPlan: dispatcherPlan{name: "the dispatcher", style: byChannel}}
		h.main = newConsumer(h, atMain)
		a.conn = h
		for dir := range a.lanes {
			l := &a.lanes[dir]
			l.account, l.dir, l.dispatcher, l.depth, l.posters = a, direction(dir), h, 64, 2
			l.addPage(8, 64)
			l.addPage(8, 64)
		}
		a.out = &region{buf: make([]byte, 2*maxWindow*slotSize)}
		a.recv = &region{buf: make([]byte, 2*maxWindow*slotSize)}
		a.in = &region{buf: make([]byte, inSize)}
		d.sides[s], d.link.sides[s] = a, a
	}
	d.main, d.far = d.sides[0].conn.main, d.sides[1].conn.main
	d.life = newLife(d.link, 0, plan{})
	for _, a := range d.sides {
		a.try(nil, event.Established)
	}
	return d
}

// up delivers ESTABLISHED to both sides.
func (d *desk) up() *desk {
	d.connection(0, event.Established)
	d.connection(1, event.Established)
	return d
}

func (d *desk) connection(side int, n event.Number) {
	d.sides[side].conn.main.take(&event.Event{Number: n, Source: d.sides[side].ep})
}

// begin begins a post on a page of side 0's requests, or of its receives.
func (d *desk) begin(dir direction, number int, op hw.Op, flags hw.Flags, n int) (*page, *entry) {
	return d.beginOn(d.sides[0].lanes[dir].pages[number], op, flags, n)
}

func (d *desk) beginOn(p *page, op hw.Op, flags hw.Flags, n int) (*page, *entry) {
	e := p.label(0, atMain, untagged)
	e.op, e.flags, e.length = op, flags, uint32(n)
	e.local = span{off: uint32(p.slotAt(p.slot(0))), len: uint32(n), pieces: 1}
	p.begin(1)
	return p, e
}

// post begins a post and records that it was accepted.
func (d *desk) post(dir direction, number int, op hw.Op, flags hw.Flags, n int) *entry {
	p, e := d.begin(dir, number, op, flags, n)
	p.returned(1, 1)
	return e
}

// send posts a send of 16 bytes.
func (d *desk) send(flags hw.Flags) *entry {
	e := d.post(requests, 0, hw.OpSend, flags, 16)
	e.arrived.Store(1) // otherwise the audit misses it
	return e
}

// fresh posts a send of 16 bytes whose message has not arrived.
func (d *desk) fresh() *entry { return d.post(requests, 0, hw.OpSend, 0, 16) }

// event is the event of an entry that succeeded.
func eventOf(d *desk, e *entry) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Op: e.op, Cookie: e.cookie, Length: e.length, Source: d.sides[0].ep}
}

func failure(d *desk, e *entry, s hw.Status) *event.Event {
	return &event.Event{Number: event.DTOCompletion, Op: e.op, Cookie: e.cookie, Status: s, Source: d.sides[0].ep}
}

func (d *desk) succeed(es ...*entry) {
	for _, e := range es {
		d.main.take(eventOf(d, e))
	}
}

func (d *desk) flush(es ...*entry) {
	d.life.ending.Store(true)
	for _, e := range es {
		d.main.take(failure(d, e, hw.StatusFlushed))
	}
}

// audit audits a connection that has ended and whose endpoints are closed.
func (d *desk) audit() {
	for s, a := range d.sides {
		a.closed = true
		a.closing.Store(true)
		d.life.ending.Store(true)
		if a.phaseNow() == up {
			d.connection(s, event.Disconnected)
		}
	}
	d.link.audit()
}

// message delivers the message of e to a receive of the other side.
func (d *desk) message(e *entry, change func(buf []byte)) {
	a := d.sides[1]
	p, r := d.beginOn(a.lanes[receives].pages[0], hw.OpRecv, 0, maxMessage)
	p.returned(1, 1)
	buf := a.recv.buf[r.local.off:][:maxMessage]
	binary.LittleEndian.PutUint64(buf, e.cookie)
	if change != nil {
		change(buf)
	}
	ev := eventOf(d, r)
	ev.Length, ev.Source = e.length, a.ep
	d.far.take(ev)
	p.reclaim(false)
}

// claim is what happens at a desk, and what the books say of it.
type claim struct {
	name string
	do   func(d *desk)
	say  []Kind
}

// judge demands that the books say what is claimed, at desks whose connection is up or not.
func judge(t *testing.T, up bool, claims []claim) {
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			if up {
				d.up()
			}
			c.do(d)
			assert.Equal(t, c.say, d.kinds)
		})
	}
}

func TestTheBooks(t *testing.T) {
	judge(t, true, []claim{
		{"what completes once is right", func(d *desk) { d.succeed(d.send(0), d.send(0)); d.audit() }, nil},
		{"an event may come before the post has returned", func(d *desk) {
			p, e := d.begin(requests, 0, hw.OpSend, 0, 16)
			d.succeed(e)
			p.returned(1, 1)
		}, nil},
		{"what does not complete is lost", func(d *desk) { d.succeed(d.send(0)); d.send(0); d.audit() }, []Kind{Lost, Lost}},
		{"what completes twice", func(d *desk) { e := d.send(0); d.succeed(e, e) }, []Kind{Twice}},
		{"what was refused completes", func(d *desk) {
			p, e := d.begin(requests, 0, hw.OpSend, 0, 16)
			p.returned(1, 0)
			d.succeed(e)
		}, []Kind{Refused}},
		{"what completed is refused", func(d *desk) {
			p, e := d.begin(requests, 0, hw.OpSend, 0, 16)
			d.succeed(e)
			p.returned(1, 0)
		}, []Kind{Refused}},
		{"a suppressed success is silent", func(d *desk) { d.send(hw.Suppress); d.succeed(d.send(0)); d.audit() }, nil},
		{"a suppressed success is reported", func(d *desk) { d.succeed(d.send(hw.Suppress)) }, []Kind{Unasked}},
		{"a suppressed failure is reported", func(d *desk) { d.flush(d.send(hw.Suppress)); d.audit() }, nil},
		{"a suppressed failure is not reported", func(d *desk) { d.flush(d.send(0)); d.send(hw.Suppress); d.audit() }, []Kind{Lost}},

		{"one overtakes another", func(d *desk) { a, b := d.send(0), d.send(0); d.succeed(b, a) }, []Kind{Disorder}},
		{"one overtakes another poster's", func(d *desk) {
			a, b := d.send(0), d.post(requests, 1, hw.OpSend, 0, 16)
			d.succeed(b, a)
		}, []Kind{Disorder}},
		{"posts at the same time have no order", func(d *desk) {
			p, a := d.begin(requests, 0, hw.OpSend, 0, 16)
			b := d.post(requests, 1, hw.OpSend, 0, 16)
			p.returned(1, 1)
			d.succeed(b, a)
		}, nil},
		{"receives and requests have no order", func(d *desk) {
			a, b := d.send(0), d.post(receives, 0, hw.OpRecv, 0, 4)
			ev := eventOf(d, b)
			ev.Length = 0
			d.main.take(ev)
			d.succeed(a)
		}, nil},

		{"another operation", func(d *desk) { ev := eventOf(d, d.send(0)); ev.Op = hw.OpWrite; d.main.take(ev) }, []Kind{Mismatch}},
		{"another length", func(d *desk) { ev := eventOf(d, d.send(0)); ev.Length--; d.main.take(ev) }, []Kind{Mismatch}},
		{"another endpoint", func(d *desk) { ev := eventOf(d, d.send(0)); ev.Source = d.sides[1].ep; d.main.take(ev) }, []Kind{Mismatch}},
		{"a failure with a length", func(d *desk) {
			e := d.send(0)
			d.life.ending.Store(true)
			ev := failure(d, e, hw.StatusFlushed)
			ev.Length = 1
			d.main.take(ev)
		}, []Kind{Mismatch}},
		{"a success that is impossible", func(d *desk) { e := d.send(0); e.mustFail = true; d.succeed(e) }, []Kind{Mismatch}},
		{"another dispatcher", func(d *desk) { d.far.take(eventOf(d, d.send(0))) }, []Kind{Misplaced}},
		{"another place of the dispatcher", func(d *desk) { e := d.send(0); e.place = 1; d.succeed(e) }, []Kind{Misplaced}},

		{"a failure without a cause", func(d *desk) { d.main.take(failure(d, d.send(0), hw.StatusFlushed)) }, []Kind{Causeless}},
		{"a failure of another cause", func(d *desk) {
			d.life.ending.Store(true)
			d.main.take(failure(d, d.send(0), hw.StatusRemoteAccess))
		}, []Kind{Causeless}},
		{"a failure that was provoked", func(d *desk) {
			d.life.ending.Store(true)
			d.life.may = statuses(hw.StatusRemoteAccess)
			d.main.take(failure(d, d.send(0), hw.StatusRemoteAccess))
		}, nil},
		{"a failure of an unreliable provider", func(d *desk) {
			d.w.cfg.Unreliable = true
			d.main.take(failure(d, d.send(0), hw.StatusTransport))
		}, nil},
		{"a flush of what a graceful end lets finish", func(d *desk) {
			e := d.send(0)
			d.life.plan.ending = graceful
			d.life.end()
			d.flush(e)
		}, []Kind{Causeless}},
		{"a success after a failure", func(d *desk) {
			a, b := d.send(0), d.send(0)
			d.flush(a)
			d.succeed(b)
			d.audit()
		}, []Kind{Resurgence}},
	})
}

func TestTheBooksOnMessages(t *testing.T) {
	judge(t, true, []claim{
		{"a message is what was sent", func(d *desk) { d.message(d.fresh(), nil) }, nil},
		{"no cookie", func(d *desk) { d.message(d.fresh(), func(b []byte) { b[0]++ }) }, []Kind{Stranger}},
		{"a message that came before", func(d *desk) { e := d.fresh(); d.message(e, nil); d.message(e, nil) }, []Kind{Twice}},
		{"a message that was not sent", func(d *desk) { d.message(d.post(requests, 0, hw.OpRead, 0, 16), nil) }, []Kind{Mismatch}},
		{"a message of another length", func(d *desk) {
			other := d.post(requests, 0, hw.OpSend, 0, 24)
			d.message(d.fresh(), func(b []byte) { binary.LittleEndian.PutUint64(b, other.cookie) })
		}, []Kind{Mismatch}},
		{"a message that is solicited, and its event not", func(d *desk) {
			d.message(d.post(requests, 0, hw.OpSend, hw.SolicitedWait, 16), nil)
		}, []Kind{Mismatch}},
		{"messages in another order", func(d *desk) { a, b := d.fresh(), d.fresh(); d.message(b, nil); d.message(a, nil) }, []Kind{Disorder}},
		{"what was sent did not arrive", func(d *desk) {
			e := d.fresh()
			d.succeed(e)
			d.audit()
		}, []Kind{Lost}},
	})
}

func TestTheBooksOnConnections(t *testing.T) {
	judge(t, false, []claim{
		{"up and down", func(d *desk) { d.up().audit() }, nil},
		{"ESTABLISHED twice", func(d *desk) { d.up().connection(0, event.Established) }, []Kind{Connection}},
		{"the end without a beginning", func(d *desk) { d.connection(0, event.Disconnected) }, []Kind{Connection}},
		{"the end twice", func(d *desk) {
			d.up().connection(0, event.Disconnected)
			d.connection(0, event.Disconnected)
		}, []Kind{Connection}},
		{"an outcome that nothing led to", func(d *desk) { d.connection(0, event.PeerRejected) }, []Kind{Connection}},
		{"broken without a cause", func(d *desk) { d.up().connection(0, event.Broken) }, []Kind{Causeless}},
		{"broken with a cause", func(d *desk) {
			d.up().life.ending.Store(true)
			d.life.breaks = true
			d.connection(0, event.Broken)
		}, nil},
		{"an endpoint that is no more", func(d *desk) {
			d.up().w.books.seal(d.sides[0])
			d.connection(0, event.Disconnected)
		}, []Kind{Stranger}},
		{"other private data", func(d *desk) {
			d.sides[0].try([]byte("yes"), event.Established)
			d.connection(0, event.Established)
		}, []Kind{Connection}},
		{"success before ESTABLISHED", func(d *desk) { d.succeed(d.send(0)) }, []Kind{Misplaced}},
		{"success after the end", func(d *desk) {
			e := d.up().send(0)
			d.connection(0, event.Disconnected)
			d.succeed(e)
		}, []Kind{Misplaced}},
		{"a flush after the end of what came before", func(d *desk) {
			e := d.up().send(0)
			d.life.end()
			d.connection(0, event.Disconnected)
			d.flush(e)
		}, []Kind{Misplaced}},
		{"a flush after the end of what came after", func(d *desk) {
			d.up().life.end()
			e := d.send(0)
			d.connection(0, event.Disconnected)
			d.flush(e)
		}, nil},
		{"an asynchronous error", func(d *desk) { d.main.take(&event.Event{Number: event.AsyncProviderError}) }, []Kind{Alarm}},
	})
}
