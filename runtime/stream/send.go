package stream

import (
	dat "godat/runtime"
)

// reportCredit is the credit that messages with bytes, and reports of bytes read alone,
// leave for a report that grants receives. So two ends whose buffers are full never wait
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
func (c *Conn) credits() int64 {
	may := min(c.out.granted.Load(), c.out.completed.Load()+messages)
	n := int64(may - c.out.sent.Load())
	if !c.out.fin.Load() {
		n--
	}
	return n
}

// due reports whether receives have to be posted, or the peer has to be told something
// that it may wait for.
func (c *Conn) due() bool {
	if c.in.received.Load()-c.in.reposted.Load() >= messages/2 {
		return true
	}
	return c.reportDue()
}

// reportDue reports whether the peer may wait for a report, and one can be sent.
func (c *Conn) reportDue() bool {
	credits := c.credits()
	if credits > 0 && messages+c.in.reposted.Load()-c.out.toldGranted.Load() >= messages/2 {
		return true
	}
	return credits > reportCredit && c.in.consumed.Load()-c.out.toldConsumed.Load() >= uint64(len(c.in.ring)/4)
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
		_ = c.post(0, false) // if it fails, the connection has ended
	}
}

// send sends the n bytes that the caller has put where room said. It returns n, or an
// error.
func (c *Conn) send(n int) (int, error) {
	for n > 0 {
		if sent, err := c.trySend(n); err != nil {
			return 0, err
		} else if sent {
			break
		}
		if _, err := c.room(n); err != nil { // a report of the reader's has taken the credit
			return 0, err
		}
	}
	return n, nil
}

// trySend sends n bytes if there is a credit.
func (c *Conn) trySend(n int) (bool, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out.fin.Load() { // Close has sent it meanwhile
		return false, c.mayNotWrite()
	}
	if c.credits() <= reportCredit {
		return false, nil
	}
	return true, c.post(n, false)
}

// finish sends the FIN, once.
func (c *Conn) finish() error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out.fin.Load() || c.ended.Load() != nil || c.out.granted.Load() == 0 {
		return nil
	}
	return c.post(0, true)
}

// post posts a message with the next n bytes of the image, which grants all receives
// whose messages have come. The caller holds sending and has a credit.
func (c *Conn) post(n int, fin bool) error {
	c.repost()
	_, err := c.endpoint.PostBatch(c.next(n, fin))
	if err == nil {
		return nil
	}
	c.stop(err) // unless why the connection ended is known
	return c.ended.Load().err
}

// next makes the next message and counts it. The bytes travel within the message if they
// are few, and otherwise by a write before it.
func (c *Conn) next(n int, fin bool) []dat.DTO {
	o := &c.out
	sent, from := o.sent.Load(), o.produced.Load()
	slot := int(sent % messages)
	at := int(from & uint64(len(o.ring)-1))
	m := message{produced: from + uint64(n), consumed: c.in.consumed.Load(), granted: messages + c.in.reposted.Load(), fin: fin}
	batch := c.batch[:0]
	b := o.slots[slot*slotSize:][:slotSize]
	if n <= maxInline {
		m.inline = copy(b[headerSize:], o.ring[at:at+n])
	} else {
		batch = append(batch, dat.DTO{
			Op: dat.OpWrite, Flags: dat.Suppress, Cookie: writeCookie,
			Segment: c.own.Segment(slotBytes+at, n), Remote: o.peer.Slice(at, n),
		})
	}
	m.put(b)
	o.upTo[slot] = m.produced
	o.toldConsumed.Store(m.consumed)
	o.toldGranted.Store(m.granted)
	o.fin.Store(o.fin.Load() || fin)
	o.produced.Store(m.produced) // before the peer can report it as read
	o.sent.Store(sent + 1)
	return append(batch, dat.DTO{
		Op: dat.OpSend, Cookie: sendCookie,
		Segment: c.own.Segment(sendSlots+slot*slotSize, headerSize+m.inline),
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
	return c.endpoint.PostRecv(uint64(slot), dat.Default, c.own.Segment(recvSlots+slot*slotSize, slotSize))
}
