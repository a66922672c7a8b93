package iwarp

import (
	"godat/hw/iwarp/wire"
)

// consume handles the FPDUs in the buffer.
func (r *receiver) consume() error {
	r.own.Check()
	for {
		if d := &r.inPlace; d.begun {
			if done, err := d.finish(); err != nil {
				return r.fault(err, d.ulpdu(), d.length)
			} else if !done {
				return nil
			}
			r.unlimitRest()
		}
		r.mayTrace()
		b := r.in.bytes()
		if r.link.agreed.markersIn {
			ulpdu, n, err := wire.ParseMarkedFPDU(b[:0], b, r.pos, r.link.agreed.crc)
			if err == wire.ErrIncomplete {
				r.need = readSize / 2
				return nil
			}
			if err != nil {
				return r.fault(err, nil, 0)
			}
			if err = r.handle(ulpdu); err != nil {
				return err
			}
			r.pos += uint64(n)
			r.in.r += n
			r.unlimitRest()
			continue
		}
		if len(b) < wire.FPDULengthSize {
			r.need = wire.MaxFramedHeaderSize
			return nil
		}
		length := wire.ULPDULength(b)
		n := wire.FPDUSize(length)
		if r.need = n; len(b) < n {
			if begun, err := r.inPlace.begin(b, length); err != nil {
				return r.fault(err, r.in.bytes()[wire.FPDULengthSize:], length)
			} else if !begun {
				return nil
			}
			continue
		}
		if r.link.agreed.crc && !wire.IntactFPDU(b[:n]) {
			return r.fault(wire.ErrCRC, nil, 0)
		}
		r.place.more = len(b) > n
		if err := r.handle(b[wire.FPDULengthSize:][:length:length]); err != nil {
			return err
		}
		r.in.r += n
		r.unlimitRest()
	}
}

// handle takes one whole ULPDU.
func (r *receiver) handle(ulpdu []byte) error {
	if !r.heard {
		r.firstFPDU()
	}
	n, err := r.h.Parse(ulpdu, len(ulpdu))
	if err != nil {
		return r.fault(err, ulpdu, len(ulpdu))
	}
	payload := ulpdu[n:]
	if err := r.place.arrive(&r.h, payload); err != nil {
		return r.fault(err, ulpdu, len(ulpdu))
	}
	return nil
}
