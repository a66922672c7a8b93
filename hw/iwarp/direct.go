package iwarp

import (
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// directMin is how much of a payload must be outstanding for it to be read
// straight into memory. With a CRC none is: others may write to the memory between
// the placement and the sum, and nothing is placed before its CRC has been checked.
const directMin = 8 << 10

// direct begins to take an FPDU that is incomplete, and reads what is missing
// straight into memory. It is done when all of it is in its place; otherwise it
// was not for it.
func (l *life) direct(b []byte, length int) (done bool, err error) {
	x := &l.rx
	if l.port.staged || l.agreed.crc || !x.heard || x.need-len(b) < directMin {
		return false, nil
	}
	if readSize-x.in.r < readSize/2 {
		x.in.ready(readSize) // for what comes behind the payload
		b = x.in.bytes()
	}
	b = b[wire.FPDULengthSize:]
	n, err := x.h.Parse(b, length)
	if err == wire.ErrIncomplete {
		return false, nil
	}
	if err != nil {
		return false, l.fault(err, b, length)
	}
	if !carries(x.h.Opcode) {
		return false, nil
	}
	if err := l.placeDirect(x.h, b, n, length); err != nil {
		return false, err
	}
	return true, nil
}

// placeDirect takes the FPDU with header h, of n octets, in a ULPDU of length
// octets whose beginning is b.
func (l *life) placeDirect(h wire.Header, b []byte, n, length int) error {
	x := &l.rx
	if err := l.begin(&h, length-n); err != nil {
		return l.fault(err, b, length)
	}
	have := b[n:min(len(b), length)]
	if !l.store(have) {
		return l.fault(l.storeFault(h.Opcode), b, length)
	}
	// The buffer keeps the header, for a Terminate, and gets what comes behind
	// the payload.
	x.left = length - n - len(have)
	x.in.w = x.in.r + wire.FPDULengthSize + n
	trailer, ulpdu := x.in.w, x.in.bytes()[wire.FPDULengthSize:]
	if err := l.readDirect(); err != nil {
		return err
	}
	if x.dead {
		x.dead = false
		return l.fault(l.storeFault(h.Opcode), ulpdu, length)
	}
	for {
		k, err := wire.ParseTrailer(x.in.buf[trailer:x.in.w], length, 0, false)
		switch err {
		case nil:
			if err = l.finishSegment(&h, length-n); err != nil {
				return l.fault(err, ulpdu, length)
			}
			x.in.r = trailer + k
			return nil
		case wire.ErrIncomplete:
			if err = l.more(); err != nil {
				return err
			}
		default:
			return l.fault(err, nil, 0)
		}
	}
}

// more reads on in the middle of an FPDU; the buffer has room.
func (l *life) more() error {
	l.emit()
	l.rx.need = 0 // so that nothing moves
	if err := l.fill(); err != nil {
		return l.ended(err)
	}
	return nil
}

// readDirect reads x.left octets to where begin has found, and what comes behind
// them into the buffer.
func (l *life) readDirect() error {
	x := &l.rx
	for x.left > 0 && !x.dead {
		x.err = nil
		err := l.port.raw.Read(x.directFn)
		if err == nil {
			err = x.err
		}
		if err != nil {
			if err = l.ended(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// doDirect looks the memory up each time, and holds nothing of it while it waits.
func (l *life) doDirect(fd uintptr) bool {
	x := &l.rx
	l.touch.Add(1)
	parts, c, n := x.parts[:0], *x.dst, x.left
	for n > 0 && len(parts) < maxSegments {
		mem := l.rest(&c, n)
		if mem == nil {
			l.touch.Add(1)
			x.dead = true
			return true
		}
		parts = append(parts, mem)
		c.off += uint32(len(mem))
		n -= len(mem)
	}
	direct := len(parts)
	if n == 0 {
		parts = append(parts, x.in.buf[x.in.w:])
	}
	x.parts = parts
	yield.Point()
	got, again, err := readVector(int(fd), &x.vec, parts)
	if again {
		clear(x.parts)
		l.touch.Add(1)
		l.hurry()
		return false
	}
	x.err = err
	for _, mem := range parts[:direct] {
		k := min(got, len(mem))
		l.skip(x.dst, k)
		x.left -= k
		got -= k
	}
	x.in.w += got
	x.seen = true
	clear(x.parts)
	l.touch.Add(1)
	return true
}

// skip moves a cursor on within what rest has found.
func (l *life) skip(c *cursor, n int) {
	if n == 0 {
		return
	}
	for c.off == c.sgl[0].Len {
		c.sgl, c.off = c.sgl[1:], 0
	}
	c.off += uint32(n)
}
