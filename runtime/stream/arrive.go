package stream

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/release"
	"godat/mem"
)

// flow is what passes between the two ends: bytes, messages and their credits.
//
// Its counters have one writer each, which stores most of them without a locked
// instruction (package release). No wake-up is lost: a call that waits says so by a locked
// store, and then looks at the counters; arrive and sent store the counters, received and
// completed last and by a locked store, and then look whether a call waits. What a post or
// a Read stores wakes nobody. A goroutine that reads a post's stores late makes a report that is
// not due, which harms nobody. One that reads consumed late misses a report that is due; so a Read
// without a credit for its report stores consumed once more, locked, and looks again (take). arrive
// and sent also set a timer for what is due (hold.go), because the call that they wake may be
// leaving.
//
// A reader that waits most often waits for bytes. When they come, arrive looks for it before
// the locked store, and does without that one if it has woken the reader: the channel by
// which it did is locked by such an instruction, too, behind the counters and before the
// look for a writer.
type flow struct {
	in  inbound
	out outbound
}

// inbound is the direction from the peer. Its rings and slots belong to the peer and the
// provider, but for the bytes between consumed and produced, which are the reader's, and
// for a slot between the completion of its receive and the next post.
type inbound struct {
	landing    // of Read's argument
	first      ring
	second     ring         // written once, before offer is
	secondSize int          // of second; immutable
	offer      atomic.Int32 // of the second ring; the holder of line.sending writes it
	slots      []byte       // of the receives

	// Written by the goroutine that completes receives, one at a time.
	produced atomic.Uint64 // bytes that the peer has written
	received atomic.Uint64 // messages
	fin      atomic.Bool   // there will be no more bytes
	movedAt  atomic.Uint64 // the first byte in the second ring, or notMoved
	growing  bool          // grow was started

	consumed atomic.Uint64 // bytes that the program has read; the holder of Conn.reading writes it
	reposted atomic.Uint64 // receives posted again; the holder of line.sending writes it
}

// outbound is the direction to the peer. The holder of line.sending writes its counters,
// but for those that say otherwise.
type outbound struct {
	image    ring              // writes take their bytes from here; the holder of Conn.writing fills it
	imaged   uint64            // the end of the newest bytes that were sent from there; the same
	cramped  bool              // a write has waited for the image, and not for the ring; the same
	loan                       // of Write's argument
	target                     // what a Read of the peer has offered
	slots    []byte            // of the messages under way
	peer     mem.RemoteSegment // the peer's ring; the holder of Conn.writing changes it
	moving   bool              // the next bytes are the first in that ring; the same
	held     bool              // a call that writes holds Conn.writing; the holder of line.sending writes it
	version  uint8             // what both ends speak; written by meet
	smallest uint32            // bytes of the peer's first ring
	receives uint64            // receives that the peer has posted, at most

	produced atomic.Uint64 // bytes that were posted
	sent     atomic.Uint64 // messages that were posted
	fin      atomic.Bool   // the FIN was posted
	want     int           // bytes that a writer waits to send; of the holder of Conn.writing
	// What the newest message said.
	toldConsumed, toldGranted atomic.Uint64

	upTo      [messages]uint64 // produced, by slot
	completed atomic.Uint64    // messages whose sends have completed; their completer writes it
	done      atomic.Uint64    // bytes behind which the image is free; the same

	// Written by the goroutine that completes receives.
	consumed atomic.Uint64     // bytes that the peer has read
	granted  atomic.Uint64     // messages that the peer has posted receives for; 0 until the connection is up
	offered  mem.RemoteSegment // the peer's second ring; written once, before hasOffer is
	hasOffer atomic.Bool
}

// hear is what the goroutine that completes an operation calls with its event.
func (c *line) hear(ev event.Event) {
	if ev.Number != event.DTOCompletion || ev.Status != hw.StatusSuccess {
		c.change(ev.Number, ev.Status, ev.Data)
	} else if ev.Cookie < messages {
		c.arrive(int(ev.Cookie))
	} else if place := ev.Cookie - sendCookie; place < messages {
		c.sent(place)
	}
}

// change records a failure or a change of the connection. As for arrive and sent, the
// goroutine that completes the operation calls it, so it takes no lock and posts nothing.
func (c *line) change(number event.Number, status hw.Status, data any) {
	switch {
	case number == event.DTOCompletion:
		if status != hw.StatusFlushed { // why the queues are flushed, the event of the end says
			c.stop(event.Event{Number: number, Status: status, Data: data}.Err())
		}
	case number == event.IBDTOEvent:
		c.stop(fmt.Errorf("%w: a write with immediate data", ErrProtocol))
	case number == event.Closed: // all calls end, if the close of the adapter has closed the dispatcher
		c.stop(net.ErrClosed)
		close(c.gone)
	case number == event.Established:
		private, _ := data.([]byte)
		c.establish(private)
	default:
		c.stop(event.Event{Number: number, Data: data}.Err())
		close(c.down)
	}
}

// establish begins the flow of bytes. A connection that was dialed has the peer's hello in
// the private data of the accept.
func (c *line) establish(private []byte) {
	if c.flow.out.receives == 0 {
		h, err := parseHello(private)
		if err != nil {
			c.stop(err)
			close(c.up)
			return
		}
		c.flow.meet(h)
	}
	c.flow.out.granted.Store(c.flow.out.receives)
	close(c.up)
	c.writer.notify()
}

// sent records that the message of a slot has been sent, and those before it. That frees
// slots, so sent wakes a writer, and has a report made that is due.
func (c *line) sent(place uint64) {
	c.flow.out.complete(place)
	c.writer.notify()
	if c.flow.due() { // there was no slot for a report
		c.reader.notify()
		c.reportSoon()
	}
}

func (o *outbound) complete(place uint64) {
	release.Uint64(&o.done, o.upTo[place])
	n := o.completed.Load()
	o.completed.Store(n + (place-n)%messages + 1) // last, and locked: see flow
}

// arrive records a message of the peer.
func (c *line) arrive(slot int) {
	if c.ended.Load() != nil {
		return
	}
	b := c.flow.in.slots[slot*slotSize:][:slotSize]
	var m message
	ok := m.parse(b, c.flow.out.version)
	b[headerSize-1] = 0 // for a message that is too short
	if !ok {
		c.stop(fmt.Errorf("%w: a message of an unknown form", ErrProtocol))
		return
	}
	if lie := c.flow.check(&m); lie != "" {
		c.stop(fmt.Errorf("%w: %s", ErrProtocol, lie))
		return
	}
	old := c.flow.in.produced.Load()
	release.Uint64(&c.flow.out.consumed, m.consumed)
	if m.has(flagMoved | flagDirect | flagRing | flagOffer) {
		c.arriveRing(&m, old)
	}
	if m.inline > 0 {
		place(c.flow.in.fill(), old, b[headerSize:][:m.inline])
	}
	release.Uint64(&c.flow.out.granted, m.granted)
	release.Uint64(&c.flow.in.produced, m.produced)
	if m.has(flagFIN) {
		c.flow.in.fin.Store(true)
	}
	received := c.flow.in.received.Load() + 1
	release.Uint64(&c.flow.in.received, received)
	if !c.flow.in.growing && c.flow.tight() {
		c.flow.in.growing = true
		c.growing.Go(c.grow)
	}
	more := m.produced != old || m.has(flagFIN)
	woken := more && c.reader.notify()
	if !woken {
		c.flow.in.received.Store(received) // once more, and locked: see flow
	}
	due := c.flow.due()
	if !woken && (more || due) {
		c.reader.notify()
	}
	c.writer.notify()
	if due {
		c.reportSoon()
	}
}

// arriveRing records what a message says of rings and buffers, before its bytes count.
// There were old bytes before.
func (c *line) arriveRing(m *message, old uint64) {
	if m.has(flagMoved) {
		c.flow.in.movedAt.Store(old)
	}
	if m.has(flagDirect) {
		c.flow.in.end.Store(m.produced)
	}
	if m.has(flagRing) {
		c.flow.out.offered = m.ring
		c.flow.out.hasOffer.Store(true)
	}
	if m.has(flagOffer) {
		c.flow.out.buffer = m.ring
		c.flow.out.bufferAt.Store(m.consumed)
	}
}

// check says what is wrong with the counters of a message, or nothing. Counters of this
// end that grow meanwhile only allow more.
func (f *flow) check(m *message) string {
	produced, consumed, granted := f.in.produced.Load(), f.out.consumed.Load(), f.out.granted.Load()
	if m.flags != 0 {
		if lie := f.checkRings(m); lie != "" {
			return lie
		}
	}
	switch {
	case m.produced < produced || m.consumed < consumed || m.granted < granted:
		return "a counter went back"
	case m.has(flagDirect) && (f.in.at.Load() != produced || m.produced-produced-1 >= uint64(f.in.size)):
		return "it wrote bytes to a buffer that was not offered for them"
	case !m.has(flagDirect) && m.produced != produced && m.produced-f.in.consumed.Load() > f.in.room(m):
		return "it wrote more bytes than the ring has room for"
	case m.inline > 0 && m.produced-produced != uint64(m.inline):
		return "the bytes of a message are not those that it counts"
	case m.consumed > f.out.produced.Load():
		return "it has read more bytes than were sent"
	case m.granted > f.out.sent.Load()+f.out.receives:
		return "it grants more receives than it has"
	case f.in.fin.Load() && (m.has(flagFIN) || m.produced != produced):
		return "bytes after the end of the stream"
	}
	return ""
}

// room is how many bytes there may be in the ring that a message uses.
func (in *inbound) room(m *message) uint64 {
	if m.has(flagMoved) {
		return uint64(len(in.second.mem))
	}
	return uint64(len(in.fill()))
}

// checkRings is check for what a message says of rings.
func (f *flow) checkRings(m *message) string {
	if m.has(flagMoved) && (f.in.offer.Load() != offerSent || f.in.movedAt.Load() != notMoved) {
		return "it uses a ring that was not offered"
	}
	if m.has(flagOffer) {
		return f.checkBuffer(m)
	}
	if !m.has(flagRing) {
		return ""
	}
	if f.out.hasOffer.Load() || m.ring.Len <= f.out.smallest {
		return "it offers a second ring twice, or one that is not larger"
	}
	return flawOf(m.ring)
}

// checkBuffer is check for what a message says of a buffer.
func (f *flow) checkBuffer(m *message) string {
	before := f.out.bufferAt.Load()
	switch {
	case m.ring.Len < leastRing || m.ring.Addr+uint64(m.ring.Len) < m.ring.Addr:
		return "it offers a buffer that is too short, or has no end"
	case before != notOffered && m.consumed <= before:
		return "it offers a second buffer for the same bytes"
	}
	return ""
}

// stop records why the connection is over: the first reason stays.
func (c *line) stop(err error) {
	if err == nil { // the peer has disconnected in order; a reader knows whether a FIN came before
		err = io.ErrUnexpectedEOF
	}
	if c.ended.CompareAndSwap(nil, &end{err}) {
		c.reader.notify()
		c.writer.notify()
	}
}
