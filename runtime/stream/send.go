package stream

import (
	dat "godat/runtime"
)

// reportCredit is the credit that messages with bytes, and reports of bytes read or offers
// of a ring alone, leave for a report that grants receives. So two ends whose buffers are full never wait
// for each other's grants for ever:
//
// Suppose that all messages have arrived, and that neither end has a credit. Then the last
// message of each end, but for the FIN, was a report that granted more than its message
// before. One of these two reports was sent before the other one had arrived. Its end took
// the credit for it from the grants before the other report, which brought at least one
// more: a contradiction. And an end that has a credit reports what an end without one waits
// for: all but one of that end's messages are ungranted then, which is more than half.
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
	if f.in.received.Load()-f.in.reposted.Load() >= messages/2 {
		return true
	}
	return f.reportDue()
}

// reportDue reports whether the peer may wait for a report, and one can be sent.
func (f *flow) reportDue() bool {
	credits := f.credits()
	if credits > 0 && f.grantsDue() {
		return true // also for receives that were not posted again yet: report does that first
	}
	if credits <= reportCredit {
		return false
	}
	return f.in.offer.Load() == offerMade || f.in.consumed.Load()-f.out.toldConsumed.Load() >= uint64(len(f.in.fill())/2)
}

// grantsDue reports whether half of the receives are not granted.
func (f *flow) grantsDue() bool {
	return messages+f.in.received.Load()-f.out.toldGranted.Load() >= messages/2
}

// report posts receives again and tells the peer, as far as that is due.
func (c *Conn) report() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.ended.Load() != nil || c.out.granted.Load() == 0 {
		return
	}
	c.repost()
	if c.reportDue() {
		_ = c.post(nil, message{}) // if it fails, the connection has ended
	}
}

// send sends the bytes b, which have room: they are few, or lie where place says, or are
// lent. It returns their number, or an error.
func (c *Conn) send(b []byte) (int, error) {
	for len(b) > 0 {
		if sent, err := c.trySend(b); err != nil {
			return 0, err
		} else if sent {
			break
		}
		if _, err := c.room(len(b)); err != nil { // a report of the reader's has taken the credit
			return 0, err
		}
	}
	return len(b), nil
}

// trySend is send if there is a credit.
func (c *Conn) trySend(b []byte) (bool, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out.fin.Load() { // Close has sent it meanwhile
		return false, c.mayNotWrite()
	}
	if c.credits() <= reportCredit {
		return false, nil
	}
	return true, c.post(b, message{})
}

// finish sends the FIN, once.
func (c *Conn) finish() error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out.fin.Load() || c.ended.Load() != nil || c.out.granted.Load() == 0 {
		return nil
	}
	return c.post(nil, message{fin: true})
}

// post posts a message with the bytes b, which says what m does, and grants all receives
// whose messages have come. The caller holds sending, has a credit, and if there are bytes
// holds writing.
func (c *Conn) post(b []byte, m message) error {
	c.repost()
	_, err := c.endpoint.PostBatch(c.next(b, &m))
	if err == nil {
		return nil
	}
	c.stop(err) // unless why the connection ended is known
	return c.ended.Load().err
}

// next makes the next message and counts it. The bytes travel within the message if they
// are few, and otherwise by a write before it, from the image or from what a Write has lent:
// into the buffer that the peer has offered, or into its ring.
func (c *Conn) next(b []byte, m *message) []dat.DTO {
	o := &c.out
	sent, from, n := o.sent.Load(), o.produced.Load(), len(b)
	place := int(sent % messages)
	m.produced, m.consumed, m.granted = from+uint64(n), c.in.consumed.Load(), messages+c.in.reposted.Load()
	batch := c.batch[:0]
	slot := o.slots[place*slotSize:][:slotSize]
	m.direct = n > 0 && o.direct(n) == n
	if n > 0 && !m.direct {
		m.moved, o.moving = o.moving, false
	}
	if n > maxInline {
		batch = append(batch, dat.DTO{
			Op: dat.OpWrite, Flags: dat.Suppress, Cookie: writeCookie,
			Segment: o.source(from, n), Remote: o.sink(from, n, m.direct),
		})
	} else {
		m.inline = copy(slot[headerSize:], b)
	}
	if m.inline == 0 && !m.buffer && c.in.offer.Load() == offerMade {
		m.offers, m.ring = true, c.in.second.region.Remote(0, len(c.in.second.mem))
		c.in.offer.Store(offerSent)
	}
	length := m.put(slot)
	o.upTo[place] = m.produced
	o.toldConsumed.Store(m.consumed)
	o.toldGranted.Store(m.granted)
	o.fin.Store(o.fin.Load() || m.fin)
	o.produced.Store(m.produced) // before the peer can report it as read
	o.sent.Store(sent + 1)
	return append(batch, dat.DTO{
		Op: dat.OpSend, Cookie: sendCookie,
		Segment: c.slots.Segment(sendSlots+place*slotSize, length),
	})
}

// repost posts the receives again whose messages have come. The caller holds sending.
func (c *Conn) repost() {
	next := c.in.reposted.Load()
	for ; next != c.in.received.Load(); next++ {
		if c.postReceive(int(next%messages)) != nil {
			break // the connection has ended
		}
	}
	c.in.reposted.Store(next)
}

// postReceive posts the receive of a slot.
func (c *Conn) postReceive(slot int) error {
	return c.endpoint.PostRecv(uint64(slot), dat.Default, c.slots.Segment(recvSlots+slot*slotSize, slotSize))
}
