package iwarp

import (
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// directMin is the least part of a payload, in bytes, that the receiver reads straight
// into memory. It never does so with a CRC: it checks the CRC before it places the
// payload, and over a copy, because the program may write to the memory meanwhile.
const directMin = 8 << 10

// direct takes an incomplete FPDU of which b has come, and reads the rest straight into
// memory. It returns false if the FPDU is to be read into the buffer instead.
func (r *receiver) direct(b []byte, length int) (done bool, err error) {
	if r.staged() || r.link.agreed.crc || !r.heard || r.need-len(b) < directMin {
		return false, nil
	}
	if readSize-r.in.r < readSize/2 {
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
	if err := r.placeDirect(r.h, b, n, length); err != nil {
		return false, err
	}
	return true, nil
}

// placeDirect places the payload behind header h, which has n octets, in a ULPDU of
// length octets of which b has come.
func (r *receiver) placeDirect(h wire.Header, b []byte, n, length int) error {
	if err := r.begin(&h, length-n); err != nil {
		return r.fault(err, b, length)
	}
	have := b[n:min(len(b), length)]
	if !r.store(have) {
		return r.fault(r.storeFault(h.Opcode), b, length)
	}
	// The buffer keeps the header, for a Terminate, and takes the octets behind the
	// payload.
	r.left = length - n - len(have)
	r.in.w = r.in.r + wire.FPDULengthSize + n
	trailer, ulpdu := r.in.w, r.in.bytes()[wire.FPDULengthSize:]
	if err := r.readDirect(); err != nil {
		return err
	}
	if r.dead {
		r.dead = false
		return r.fault(r.storeFault(h.Opcode), ulpdu, length)
	}
	for {
		k, err := wire.ParseTrailer(r.in.buf[trailer:r.in.w], length, 0, false)
		switch err {
		case nil:
			if err = r.finishSegment(&h, length-n); err != nil {
				return r.fault(err, ulpdu, length)
			}
			r.in.r = trailer + k
			return nil
		case wire.ErrIncomplete:
			if err = r.more(); err != nil {
				return err
			}
		default:
			return r.fault(err, nil, 0)
		}
	}
}

// more reads more of an FPDU into the buffer, which has room.
func (r *receiver) more() error {
	r.own.Check()
	r.emit()
	r.need = 0 // so that fill does not move the octets in the buffer
	if err := r.fill(); err != nil {
		return r.readEnded(err)
	}
	return nil
}

// readDirect reads the r.left octets of a payload to dst, and the octets behind them into
// the buffer.
func (r *receiver) readDirect() error {
	r.own.Check()
	for r.left > 0 && !r.dead {
		r.err = nil
		err := r.raw.Read(r.directFn)
		if err == nil {
			err = r.err
		}
		if err != nil {
			if err = r.readEnded(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// doDirect reads what has come, and returns false to wait for more. It looks the memory
// up each time, and touches none while the receiver waits.
func (r *receiver) doDirect(fd uintptr) bool {
	r.own.Check()
	r.touch.Add(1)
	parts, c, n := r.parts[:0], *r.dst, r.left
	for n > 0 && len(parts) < maxSegments {
		mem := r.mem.next(&c, n)
		if mem == nil {
			r.touch.Add(1)
			r.dead = true
			return true
		}
		parts = append(parts, mem)
		c.off += uint32(len(mem))
		n -= len(mem)
	}
	direct := len(parts)
	if n == 0 {
		parts = append(parts, r.in.buf[r.in.w:])
	}
	r.parts = parts
	yield.Point()
	got, again, err := readVector(int(fd), &r.vec, parts)
	if again {
		clear(r.parts)
		r.touch.Add(1)
		r.limitRest()
		return false
	}
	r.err = err
	for _, mem := range parts[:direct] {
		k := min(got, len(mem))
		r.dst.skip(k)
		r.left -= k
		got -= k
	}
	r.in.w += got
	r.seen = true
	clear(r.parts)
	r.touch.Add(1)
	return true
}
