package stream

import (
	dat "godat/runtime"
)

// creditsKept is how many of the receives granted neither a message with bytes nor a
// report of bytes takes: one is kept for a report that grants receives, and one for the
// FIN. So ends that wait for each other always have a message for the grant that the
// other waits for:
//
// An end has 1 credit left only after a report that granted at least half of its receives
// since its message before. Suppose that both ends A and B have 1, and that all messages
// have arrived. If B sent its last message after A's last one had arrived, that message
// granted all receives, so A has more than 1. So the two last messages crossed. B's one
// granted at least half of B's receives anew, so of the messages that A could send, at
// least that many had arrived at B, and the rest, which is all that B's grant leaves out,
// is at most half. So A has at least half of B's receives left, which is more than 1.
const creditsKept = 2

// credits returns how many messages may be sent now: the peer has posted receives for
// them, and their slots are free.
func (c *Conn) credits() int64 {
	may := min(c.out.granted.Load(), c.out.completed.Load()+messages)
	n := int64(may - c.out.sent.Load())
	if c.out.fin.Load() {
		n++ // as if the receive of the FIN were still there
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
	if credits > 1 && messages+c.in.reposted.Load()-c.out.toldGranted.Load() >= messages/2 {
		return true
	}
	return credits > creditsKept && c.in.consumed.Load()-c.out.toldConsumed.Load() >= uint64(len(c.in.ring)/4)
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
	if n == 0 {
		return 0, nil
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.closed.Load() || c.out.fin.Load() { // Close has sent the FIN
		return 0, c.mayNotWrite()
	}
	c.repost()
	if err := c.post(n, false); err != nil {
		return 0, err
	}
	return n, nil
}

// finish sends the FIN, once.
func (c *Conn) finish() error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.out.fin.Load() || c.ended.Load() != nil || c.out.granted.Load() == 0 {
		return nil
	}
	c.repost()
	return c.post(0, true)
}

// post posts a message with the next n bytes of the image: within the message if they are
// few, and otherwise by a write before it. The caller holds sending.
func (c *Conn) post(n int, fin bool) error {
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
	batch = append(batch, dat.DTO{
		Op: dat.OpSend, Cookie: sendCookie,
		Segment: c.own.Segment(sendSlots+slot*slotSize, headerSize+m.inline),
	})
	o.upTo[slot] = m.produced
	o.toldConsumed.Store(m.consumed)
	o.toldGranted.Store(m.granted)
	o.fin.Store(o.fin.Load() || fin)
	o.produced.Store(m.produced) // before the peer can report it as read
	o.sent.Store(sent + 1)
	_, err := c.endpoint.PostBatch(batch)
	if err == nil {
		return nil
	}
	c.stop(err) // unless why the connection ended is known
	return c.ended.Load().err
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
