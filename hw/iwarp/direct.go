package iwarp

import (
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// directMin is the least part of a payload, in bytes, that the receiver reads straight
// into memory. With a CRC it does so only where the memory may hold anything (ahead.go):
// elsewhere it checks the CRC before it places the payload, and over a copy, because the
// program may write to the memory meanwhile.
const directMin = 8 << 10

// aloneMin is the least payload, in bytes, that is read by a call of its own: the call
// takes the next FPDU's header too, and none of its payload.
const aloneMin = 32 << 10

// beginDirect begins an incomplete FPDU of which b has come, so that the rest of its
// payload is read straight into memory. It returns false if the FPDU is to be read into
// the buffer instead.
func (r *receiver) beginDirect(b []byte, length int) (begun bool, err error) {
	if r.staged() || !r.heard || r.need-len(b) < directMin {
		return false, nil
	}
	if r.scratch = r.place.forScratch(b[wire.FPDULengthSize:], length); !r.scratch && r.link.agreed.crc {
		return false, nil
	}
	if len(r.in.buf)-r.in.r < readSize/2 {
		r.in.ready(readSize) // room for the octets behind the payload
		b = r.in.bytes()
	}
	b = b[wire.FPDULengthSize:]
	n, err := r.h.Parse(b, length)
	if err == wire.ErrIncomplete {
		return false, nil
	}
	if err != nil {
		return false, r.fault(err, b, length)
	}
	if !carries(r.h.Opcode) {
		return false, nil
	}
	if err := r.placeDirect(b, n, length); err != nil {
		return false, r.fault(err, b, length)
	}
	return true, nil
}

// placeDirect places what has come of the payload behind the header, which has n octets,
// in a ULPDU of length octets of which b has come. The buffer keeps the header, for a
// Terminate, and takes the octets behind the payload.
func (r *receiver) placeDirect(b []byte, n, length int) error {
	if err := r.place.begin(&r.h, length-n); err != nil {
		return err
	}
	have := b[n:min(len(b), length)]
	if !r.place.store(have) {
		return r.place.storeFault(r.h.Opcode)
	}
	r.directing, r.length, r.payload = true, length, length-n
	r.left = length - n - len(have)
	if r.scratch && r.link.agreed.crc {
		r.sum = wire.UpdateCRC(0, r.in.bytes())
	}
	r.in.w = r.in.r + wire.FPDULengthSize + n
	r.trailer = r.in.w
	r.need = 0 // so that no read moves the octets in the buffer
	return nil
}

// finishDirect ends the FPDU, if all of it has come.
func (r *receiver) finishDirect() (done bool, err error) {
	ulpdu := r.in.buf[r.in.r+wire.FPDULengthSize : r.trailer]
	if r.dead {
		r.dead = false
		return false, r.fault(r.place.storeFault(r.h.Opcode), ulpdu, r.length)
	}
	if r.left > 0 {
		return false, nil
	}
	n, err := wire.ParseTrailer(r.in.buf[r.trailer:r.in.w], r.length, r.sum, r.link.agreed.crc)
	switch err {
	case nil:
	case wire.ErrIncomplete:
		return false, nil
	default:
		return false, r.fault(err, nil, 0)
	}
	r.directing = false
	if err = r.place.finishSegment(&r.h, r.payload); err != nil {
		return false, r.fault(err, ulpdu, r.length)
	}
	r.in.r = r.trailer + n
	return true, nil
}

// behind is the part of the buffer that takes the octets behind the payload. Behind a
// large payload it has room for the next FPDU's header, so that the next payload is read
// straight into memory too, and not copied out of the buffer. Behind a small payload it is
// all of the buffer: copies of small payloads cost less than a system call for each.
func (r *receiver) behind() []byte {
	b := r.in.buf[r.in.w:]
	if r.payload < aloneMin {
		return b
	}
	return b[:min(len(b), r.trailer-r.in.w+wire.MaxTrailerSize+wire.MaxFramedHeaderSize)]
}

// readDirect reads what has come: the r.left octets of a payload to dst, and the octets
// behind them into the buffer. It looks the memory up each time, and touches none while
// the receiver waits; again means that nothing has come.
func (r *receiver) readDirect(fd int) (again bool) {
	r.own.Check()
	if r.scratch {
		return r.readAhead(fd)
	}
	r.place.beginTouch()
	parts, c, n := r.parts[:0], *r.place.dst, r.left
	for n > 0 && len(parts) < maxSegments {
		mem := r.place.mem.next(&c, n)
		if mem == nil {
			r.place.endTouch()
			r.dead = true
			return false
		}
		parts = append(parts, mem)
		c.off += uint32(len(mem))
		n -= len(mem)
	}
	direct, room := len(parts), r.left-n
	if n == 0 {
		b := r.behind()
		parts, room = append(parts, b), room+len(b)
	}
	r.parts = parts
	yield.Point()
	got, again, err := readVector(fd, &r.vec, parts)
	r.err, r.emptied = err, got < room
	r.seen = r.seen || got > 0
	for _, mem := range parts[:direct] {
		k := min(got, len(mem))
		r.place.dst.skip(k)
		r.left -= k
		got -= k
	}
	r.in.w += got
	clear(r.parts)
	r.place.endTouch()
	return again
}
