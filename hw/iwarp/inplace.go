package iwarp

import (
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// inPlaceMin is the least part of a payload, in bytes, that the receiver reads straight
// into memory. With a CRC it does so only where the memory may hold anything (ahead.go):
// elsewhere it checks the CRC before it places the payload, and over a copy, because the
// program may write to the memory meanwhile.
const inPlaceMin = 8 << 10

// aloneMin is the least payload, in bytes, that is read by a call of its own: the call
// takes the next FPDU's header too, and none of its payload.
const aloneMin = 32 << 10

// inPlace reads the payload of a large FPDU straight into memory, and with it the FPDUs that
// are likely to follow (ahead.go). The receiver's owner owns it. An error that a
// method returns is one in the peer's octets, and the receiver decides what it ends.
type inPlace struct {
	// Immutable.
	*reader // the receiver's
	place   *placer

	// The FPDU that is read so. The buffer keeps its header, for a Terminate, and takes the
	// octets behind the payload.
	begun   bool // there is one
	h       wire.Header
	trailer int    // where its trailer begins in the buffer
	length  int    // of its ULPDU
	payload int    // octets of its payload
	scratch bool   // it, or the last one, goes to memory that may hold anything; see ahead.go
	sum     uint32 // the CRC of what has come of it, if scratch
	dead    bool   // its key has died

	// The present read.
	parts [][]byte
	vec   vector
}

// begin begins an incomplete FPDU of which b has come, so that the rest of its payload is
// read straight into memory. It returns false if the FPDU is to be read into the buffer
// instead.
func (d *inPlace) begin(b []byte, length int) (begun bool, err error) {
	if d.port.staged() || !d.heard || d.need-len(b) < inPlaceMin {
		return false, nil
	}
	if d.scratch = d.place.forScratch(b[wire.FPDULengthSize:], length); !d.scratch && d.link.agreed.crc {
		return false, nil
	}
	if len(d.in.buf)-d.in.r < readSize/2 {
		d.in.ready(readSize) // room for the octets behind the payload
		b = d.in.bytes()
	}
	b = b[wire.FPDULengthSize:]
	n, err := d.h.Parse(b, length)
	if err == wire.ErrIncomplete {
		return false, nil
	}
	if err != nil || !carries(d.h.Opcode) {
		return false, err
	}
	err = d.storeFirst(b, n, length)
	return err == nil, err
}

// storeFirst places what has come of the payload behind the header, which has n octets, in a
// ULPDU of length octets of which b has come.
func (d *inPlace) storeFirst(b []byte, n, length int) error {
	if err := d.place.begin(&d.h, length-n); err != nil {
		return err
	}
	have := b[n:min(len(b), length)]
	if !d.place.store(have) {
		return d.place.storeFault(d.h.Opcode)
	}
	d.begun, d.length, d.payload = true, length, length-n
	d.left = length - n - len(have)
	if d.scratch && d.link.agreed.crc {
		d.sum = wire.UpdateCRC(0, d.in.bytes())
	}
	d.in.w = d.in.r + wire.FPDULengthSize + n
	d.trailer = d.in.w
	d.need = 0 // so that no read moves the octets in the buffer
	return nil
}

// ulpdu is what the buffer keeps of the FPDU's ULPDU: the header.
func (d *inPlace) ulpdu() []byte { return d.in.buf[d.in.r+wire.FPDULengthSize : d.trailer] }

// finish ends the FPDU, if all of it has come.
func (d *inPlace) finish() (done bool, err error) {
	if d.dead {
		d.dead = false
		return false, d.place.storeFault(d.h.Opcode)
	}
	if d.left > 0 {
		return false, nil
	}
	n, err := wire.ParseTrailer(d.in.buf[d.trailer:d.in.w], d.length, d.sum, d.link.agreed.crc)
	if err == wire.ErrIncomplete {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.begun = false
	if err = d.place.finishSegment(&d.h, d.payload); err != nil {
		return false, err
	}
	d.in.r = d.trailer + n
	return true, nil
}

// behind is the part of the buffer that takes the octets behind the payload. Behind a
// large payload it has room for the next FPDU's header, so that the next payload is read
// straight into memory too, and not copied out of the buffer. Behind a small payload it is
// all of the buffer: copies of small payloads cost less than a system call for each.
func (d *inPlace) behind() []byte {
	b := d.in.buf[d.in.w:]
	if d.payload < aloneMin {
		return b
	}
	return b[:min(len(b), d.trailer-d.in.w+wire.MaxTrailerSize+wire.MaxFramedHeaderSize)]
}

// read reads what has come: the left octets of the payload to the placer's dst, and the
// octets behind them into the buffer. It looks the memory up each time, and touches none
// while the receiver waits; again means that nothing has come.
func (d *inPlace) read(fd int) (again bool) {
	d.own.Check()
	if d.scratch {
		return d.readAhead(fd)
	}
	d.place.beginTouch()
	parts, c, n := d.parts[:0], *d.place.dst, d.left
	for n > 0 && len(parts) < maxSegments {
		mem := d.place.mem.Next(&c, n)
		if mem == nil {
			d.place.endTouch()
			d.dead = true
			return false
		}
		parts = append(parts, mem)
		c.Off += uint32(len(mem))
		n -= len(mem)
	}
	inMemory, room := len(parts), d.left-n
	if n == 0 {
		b := d.behind()
		parts, room = append(parts, b), room+len(b)
	}
	d.parts = parts
	got, again := d.readParts(fd, room)
	for _, mem := range parts[:inMemory] {
		k := min(got, len(mem))
		d.place.dst.Skip(k)
		d.left -= k
		got -= k
	}
	d.in.w += got
	clear(d.parts)
	d.place.endTouch()
	return again
}

// readParts reads into parts, which have room octets.
func (d *inPlace) readParts(fd, room int) (got int, again bool) {
	yield.Point()
	got, again, err := readVector(fd, &d.vec, d.parts)
	d.err, d.emptied = err, got < room
	d.seen = d.seen || got > 0
	if t := d.link.tap.Load(); t != nil {
		t.placed(d.parts, got)
	}
	return got, again
}

// pause says that nothing has come. Where payloads are read straight into memory, what comes
// after a pause is read with few octets: they have the header of the first one.
func (d *inPlace) pause() { d.scant = d.scant || d.left == 0 && (!d.link.agreed.crc || d.scratch) }
