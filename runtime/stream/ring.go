package stream

import (
	"math"
	"math/bits"

	"godat/hw"
	"godat/mem"
)

// A connection begins with rings of leastRing bytes. When the peer fills its ring, the
// reading end makes one of Config.Ring bytes and offers it by a message; the writing end
// uses it from its next bytes on, and says so in the message of those. Until the reader
// has reached that place of the stream it reads from the first ring.

// notMoved is inbound.movedAt while all bytes are in the first ring.
const notMoved = math.MaxUint64

// ring is memory for the bytes of a stream. Byte n lies at n modulo its length, which is a
// power of two. The memory is of the Go heap, because the close of the adapter frees all
// regions while the program may be in a Read.
type ring struct {
	mem    []byte
	region *mem.LMR
}

// newRing makes a ring that the peer may write to, if priv says so.
func newRing(pz *mem.PZ, size int, priv hw.Privileges) (r ring, err error) {
	r.mem = make([]byte, size)
	r.region, err = pz.Register(r.mem, priv)
	return r, err
}

// place copies bytes into a ring, at a place of the stream.
func place(mem []byte, at uint64, b []byte) {
	at &= uint64(len(mem) - 1)
	if n := copy(mem[at:], b); n < len(b) {
		copy(mem, b[n:])
	}
}

// forPeer are the privileges of a ring that the peer writes into.
const forPeer = hw.LocalRead | hw.LocalWrite | hw.RemoteWrite

// fill is the ring that the peer fills now. The goroutine that completes receives may call
// it, and others for its length.
func (in *inbound) fill() []byte {
	if in.movedAt.Load() != notMoved {
		return in.second.mem
	}
	return in.first.mem
}

// piece returns the bytes from a place of the stream on, as far as they have come and lie
// in one piece.
func (in *inbound) piece(at uint64) []byte {
	end := in.produced.Load()
	if at == end {
		return nil
	}
	if b := in.landed(at); b != nil {
		return b
	}
	mem := in.first.mem
	// movedAt was written before the produced that counts the first byte behind it.
	if moved := in.movedAt.Load(); at >= moved {
		mem = in.second.mem
	} else {
		end = min(end, moved)
	}
	n := end - at
	at &= uint64(len(mem) - 1)
	return mem[at:min(at+n, uint64(len(mem)))]
}

// tight reports whether the peer has filled half of the first ring, so that it should have
// the second one.
func (f *flow) tight() bool {
	in := &f.in
	return in.secondSize > len(in.first.mem) && in.produced.Load()-in.consumed.Load() >= uint64(len(in.first.mem)/2)
}

// grow makes the second ring and offers it, at once if there is a credit. It is a
// goroutine that runs once in a connection's life, because arrive may not wait for locks,
// and the program need not be in a call. If there is no memory the first ring stays.
func (c *line) grow() {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.ended.Load() != nil || c.closed.Load() {
		return
	}
	second, err := newRing(c.pz, c.flow.in.secondSize, forPeer)
	if err != nil {
		return
	}
	c.flow.in.second = second
	c.memory.Add(int64(len(second.mem)))
	c.flow.in.offer.Store(offerMade)
	if c.flow.reportDue() {
		_ = c.post(nil, &message{}) // if it fails, the connection has ended
	}
}

// The states of the offer of the second ring.
const (
	offerNone = iota
	offerMade // the ring is there
	offerSent
)

// adopt begins to use the ring that the peer has offered. The caller holds writing.
func (o *outbound) adopt() {
	if o.mayAdopt() {
		o.peer, o.moving = o.offered, true
	}
}

// mayAdopt reports whether the peer has offered a ring that is not used yet.
func (o *outbound) mayAdopt() bool { return o.hasOffer.Load() && o.peer != o.offered }

// imageRoom is how many bytes of the image no send reads, from the place of the next byte
// on. Of messages that have their bytes in them, none need say that it was sent.
func (o *outbound) imageRoom() int {
	size, done := len(o.image.mem), o.done.Load()
	if done >= o.imaged {
		return size
	}
	return size - int(o.produced.Load()-done)
}

// imageSize is how large the image should be for writes of so many bytes: two of them have
// room, or twice as many as now if a write had to wait for the image while the peer's ring
// had room. So the image follows what is under way, and not what the peer's ring may hold.
// Both lengths are powers of two: the image's divides the ring's.
func (o *outbound) imageSize(want int) int {
	least := max(leastImage, len(o.image.mem))
	if o.cramped {
		least *= 2
	}
	return min(max(least, 2<<bits.Len(uint(min(want, mostPiece)-1))), int(o.peer.Len), mostImage)
}

// stage makes the image for writes of so many bytes, or a larger one when no send uses
// the old one. The caller holds writing.
func (c *line) stage(want int) error {
	o := &c.flow.out
	size := o.imageSize(want)
	if len(o.image.mem) >= size || o.imageRoom() < len(o.image.mem) {
		return nil
	}
	c.sending.Lock() // so that Close sees the image, or stage the close
	defer c.sending.Unlock()
	if err := c.mayNotWrite(); err != nil {
		return err
	}
	image, err := newRing(c.pz, size, hw.LocalRead)
	if err != nil {
		return err
	}
	old := o.image.region
	c.memory.Add(int64(size - len(o.image.mem)))
	o.image, o.cramped = image, false
	if old != nil {
		return old.Free()
	}
	return nil
}
