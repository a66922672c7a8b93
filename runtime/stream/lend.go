package stream

import (
	"godat/hw"
	"godat/mem"
)

// A Write of leastLent bytes or more lends its argument to the device, which reads the
// bytes where they lie. So the writer copies nothing. Write returns when all of its sends
// have completed: the device has no more use for the bytes then. If it must return before,
// because its deadline passes or the connection ends, it gives the device a copy of the
// bytes in their place. Where the device can't exchange the memory of a region, as verbs
// devices can't without pinning it, all bytes go by the image.
const (
	leastLent = 16 << 10
	mostLent  = 1 << 20 // at a time; so a copy is no longer
)

// nothing is what a region is lent between two Writes.
var nothing [1]byte

// loan is a region for what a Write lends. The holder of Conn.writing changes it.
type loan struct {
	region  *mem.LMR // nil until the first large Write
	refused bool     // the device can't exchange the memory of a region
	lent    []byte   // nil but during a Write that lends
	from    uint64   // the place of lent in the stream
	until   uint64   // sends up to this place of the stream read the region
}

// mayLend reports whether a Write of n bytes may lend them: the sends of an earlier Write,
// which had to return before they were complete, read from the region no more.
func (o *outbound) mayLend(n int) bool {
	return n >= leastLent && !o.loan.refused && o.done.Load() >= o.loan.until
}

// writeLent writes bytes that it lends to the device meanwhile.
func (c *Conn) writeLent(b []byte) (n int, err error) {
	o := &c.line.flow.out
	if err := c.lend(b); err != nil || o.loan.refused {
		return 0, err
	}
	o.lent, o.loan.from, o.loan.until = b, o.produced.Load(), o.produced.Load()
	for err == nil && n < len(b) {
		var room int
		if room, err = c.room(len(b) - n); err == nil {
			room, err = c.send(b[n : n+room])
			n += room
			o.loan.until = o.produced.Load()
		}
	}
	c.takeBack()
	return n, err
}

// lend gives the region the memory b. Nothing reads from the region. If that can't be, it
// sets refused.
func (c *Conn) lend(b []byte) error {
	o := &c.line.flow.out
	if o.loan.region == nil {
		c.line.sending.Lock() // so that Close sees the region, or lend the close
		defer c.line.sending.Unlock()
		if err := c.line.mayNotWrite(); err != nil {
			return err
		}
		region, err := c.line.pz.NewLoan(mostLent, hw.LocalRead)
		if err != nil {
			o.loan.refused = true
			return nil
		}
		o.loan.region = region
	}
	o.loan.refused = o.loan.region.Lend(b) != nil // because Close has freed the region
	return nil
}

// takeBack returns when the device does not read the memory that was lent. If it may not
// wait, it copies the bytes that have not been read, and the device goes on with those.
func (c *Conn) takeBack() {
	o := &c.line.flow.out
	for !o.wasRead() && c.line.mayNotWrite() == nil {
		c.line.wait(&c.line.writer, c.line.mayTakeBack)
	}
	if o.wasRead() {
		_ = o.loan.region.Lend(nothing[:]) // so that an idle connection does not keep the program's memory
	} else {
		instead := make([]byte, len(o.lent))
		read := max(o.done.Load(), o.loan.from) - o.loan.from
		copy(instead[read:], o.lent[read:o.loan.until-o.loan.from])
		_ = o.loan.region.TakeBack(instead) // fails if Close has freed the region, which takes it back too
	}
	o.lent = nil
}

// wasRead reports whether all sends that read from the region have completed.
func (o *outbound) wasRead() bool { return o.done.Load() >= o.loan.until }

// mayTakeBack reports whether takeBack has something to do.
func (c *line) mayTakeBack() bool { return c.flow.out.wasRead() || c.mayNotWrite() != nil }

// source is where the n bytes of the stream behind from lie that a write reads.
func (o *outbound) source(from uint64, n int) mem.Segment {
	if o.lent != nil {
		return o.loan.region.Segment(int(from-o.loan.from), n)
	}
	return o.image.region.Segment(int(from)&(len(o.image.mem)-1), n)
}
