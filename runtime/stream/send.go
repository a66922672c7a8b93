package stream

import (
	"godat/ep"
	"godat/hw"
	"godat/internal/release"
	"godat/mem"
)

// reportCredit is the credit that other messages leave for a report that grants receives:
// those with bytes, reports of bytes read, and offers of a ring or a buffer. So two ends
// whose buffers are full never wait for each other's grants for ever:
//
// Suppose that all messages have arrived, and that neither end has a credit. Then the last
// message of each end, but for the FIN, was a report that granted more than its message
// before. One of these two reports was sent before the other one had arrived. Its end took
// the credit for it from the grants before the other report, which brought at least one
// more: a contradiction. And an end that has a credit reports what an end without one waits
// for: all but one of that end's messages are ungranted then, which is more than half.
// check/models/credit.pml is the model of it.
const reportCredit = 1

// credits returns how many messages may be sent now: the peer has granted receives for
// them, and their slots are free. One more is kept for the FIN, which therefore never waits.
func (f *flow) credits() int64 {
	may := min(f.out.granted.Load(), f.out.completed.Load()+messages)
	n := int64(may - f.out.sent.Load())
	if !f.out.fin.Load() {
		n--
	}
	return n
}

// due reports whether receives have to be posted, or the peer has to be told something
// that it may wait for.
func (f *flow) due() bool {
	grants := f.grantsDue() // where receives are to be posted, these are to be granted
	if !grants && !f.newsDue() {
		return false
	}
	return f.in.received.Load()-f.in.reposted.Load() >= messages/2 || f.mayReport(grants)
}

// reportDue reports whether the peer may wait for a report, and one can be sent. It looks
// at the credits last, since most often there is nothing to tell.
func (f *flow) reportDue() bool {
	grants := f.grantsDue() // also receives that were not posted again yet: report does that first
	return (grants || f.newsDue()) && f.mayReport(grants)
}

// mayReport reports whether there is a credit for a report, which grants receives or not.
func (f *flow) mayReport(grants bool) bool {
	credits := f.credits()
	return credits > reportCredit || grants && credits > 0
}

// newsDue reports whether there is a ring to offer, or half of the peer's ring was read.
func (f *flow) newsDue() bool {
	if f.in.offer.Load() == offerMade {
		return true
	}
	read := f.in.consumed.Load() - f.out.toldConsumed.Load()
	return read >= leastRing/2 && read >= uint64(len(f.in.fill())/2)
}

// grantsDue reports whether half of the receives are not granted.
func (f *flow) grantsDue() bool {
	return messages+f.in.received.Load()-f.out.toldGranted.Load() >= messages/2
}

// report posts receives again and tells the peer, as far as that is due.
func (c *line) report() {
	if !c.flow.due() {
		return
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.ended.Load() != nil || c.flow.out.granted.Load() == 0 {
		return
	}
	c.repost(1)
	if c.flow.reportDue() {
		_ = c.post(nil, &message{}) // if it fails, the connection has ended
	}
}

// send sends the bytes b, which have room: they are few, or lie where place says, or are
// lent. It returns their number, or an error.
func (c *Conn) send(b []byte) (int, error) {
	for len(b) > 0 {
		if sent, err := c.line.trySend(b); err != nil {
			return 0, err
		} else if sent {
			break
		}
		if err := c.awaitCredit(); err != nil { // a report of the reader's has taken the credit
			return 0, err
		}
	}
	return len(b), nil
}

// awaitCredit waits until there is a credit. The image, in which bytes may lie that are not sent
// yet, stays as it is.
func (c *Conn) awaitCredit() error {
	for {
		if err := c.line.mayNotWrite(); err != nil || c.line.flow.credits() > reportCredit {
			return err
		}
		c.line.report()
		c.line.wait(&c.line.writer, c.maySend)
	}
}

// maySend reports whether awaitCredit has something to do.
func (c *Conn) maySend() bool {
	return c.line.mayNotWrite() != nil || c.line.flow.credits() > reportCredit || c.line.flow.due()
}

// trySend is send if there is a credit.
func (c *line) trySend(b []byte) (sent bool, err error) {
	c.sending.Lock()
	switch {
	case c.flow.out.fin.Load(): // Close has sent it meanwhile
		err = c.mayNotWrite()
	case c.flow.credits() > reportCredit:
		sent, err = true, c.post(b, &message{})
	}
	c.sending.Unlock()
	return sent, err
}

// finish sends the FIN, once.
func (c *line) finish() error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.flow.out.fin.Load() || c.ended.Load() != nil || c.flow.out.granted.Load() == 0 {
		return nil
	}
	return c.post(nil, &message{flags: flagFIN})
}

// post posts a message with the bytes b, which says what m does, and grants all receives
// whose messages have come. The caller holds sending, has a credit, and if there are bytes
// holds writing.
func (c *line) post(b []byte, m *message) error {
	c.repost(receiveLot)
	cookie, flags, slot := c.next(b, m)
	var err error
	if len(b) > maxInline {
		c.batch[1] = ep.DTO{Op: hw.OpSend, Flags: flags, Cookie: cookie, Segment: slot}
		_, err = c.endpoint.PostBatch(c.batch[:])
	} else {
		err = c.endpoint.PostSend(cookie, flags, slot)
	}
	if err == nil {
		return nil
	}
	c.stop(err) // unless why the connection ended is known
	return c.ended.Load().err
}

// next makes the next message, counts it, and returns how to send it. The bytes travel
// within the message if they are few, and otherwise by a write before it, which it makes in
// batch: from the image or from what a Write has lent, into the buffer that the peer has
// offered, or into its ring.
//
// Of few bytes, only the last of sendLot messages says that it was sent, for all of them.
// So some slots may look taken, but fewer than half, and a Write waits only for sends that
// say so.
func (c *line) next(b []byte, m *message) (cookie uint64, flags hw.Flags, segment mem.Segment) {
	o := &c.flow.out
	sent, from, n := o.sent.Load(), o.produced.Load(), len(b)
	place := int(sent % messages)
	m.produced, m.consumed, m.granted = from+uint64(n), c.flow.in.consumed.Load(), messages+c.flow.in.reposted.Load()
	slot := o.slots[place*slotSize:][:slotSize]
	quiet := n == 0 || n <= maxInline && o.lent == nil
	if n > maxInline && o.direct(n) == n {
		m.flags |= flagDirect
	} else if n > 0 && o.moving {
		m.flags |= flagMoved
		o.moving = false
	}
	if n > maxInline {
		c.batch[0] = ep.DTO{
			Op: hw.OpWrite, Flags: hw.Suppress, Cookie: silentCookie,
			Segment: o.source(from, n), Remote: o.sink(from, n, m.has(flagDirect)),
		}
		if o.lent == nil {
			o.imaged = m.produced
		}
	} else {
		m.inline = copy(slot[headerSize:], b)
	}
	if m.inline == 0 && !m.has(flagOffer) && c.flow.in.offer.Load() == offerMade {
		m.flags |= flagRing
		m.ring = c.flow.in.second.region.Remote(0, len(c.flow.in.second.mem))
		c.flow.in.offer.Store(offerSent)
	}
	length := m.put(slot, o.version)
	if m.has(flagFIN) {
		o.fin.Store(true)
		quiet = false
	}
	segment = inSlot(c.sends, uint64(place), length)
	cookie, flags = o.count(sent, m.produced, m.consumed, m.granted, quiet)
	return cookie, flags, segment
}

// count counts a message that is about to be posted, and returns how.
func (o *outbound) count(sent, produced, consumed, granted uint64, quiet bool) (cookie uint64, flags hw.Flags) {
	place := sent % messages
	o.upTo[place] = produced
	release.Uint64(&o.toldConsumed, consumed)
	release.Uint64(&o.toldGranted, granted)
	release.Uint64(&o.produced, produced) // before the peer can report it as read
	release.Uint64(&o.sent, sent+1)
	if quiet && (sent+1)%sendLot != 0 {
		return silentCookie, hw.Suppress
	}
	return sendCookie + place, hw.Default
}

// repost posts the receives again whose messages have come, if they are so many at least.
// The caller holds sending.
func (c *line) repost(least uint64) {
	next, end := c.flow.in.reposted.Load(), c.flow.in.received.Load()
	if end-next < least {
		return
	}
	for next != end {
		n, err := c.postReceives(next, min(end-next, receiveLot))
		if next += uint64(n); err != nil {
			break // the connection has ended
		}
	}
	release.Uint64(&c.flow.in.reposted, next)
}

// postReceives posts n receives from a number on, receiveLot at most, and returns how many
// it has posted.
func (c *line) postReceives(first, n uint64) (int, error) {
	var lot [receiveLot]ep.DTO
	for i := range n {
		slot := (first + i) % messages
		lot[i].Cookie = slot
		lot[i].Segment = inSlot(c.recvs, slot, slotSize)
	}
	return c.endpoint.PostRecvBatch(lot[:n])
}

// inSlot is the first n bytes of a slot.
func inSlot(slots mem.Segment, slot uint64, n int) mem.Segment {
	slots.Addr += slot * slotSize
	slots.Len = uint32(n)
	return slots
}
