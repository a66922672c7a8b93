package iwarp

import (
	"godat/hw/iwarp/wire"
	"godat/internal/yield"
)

// consume handles the FPDUs in the buffer.
func (r *receiver) consume() error {
	r.own.Check()
	for {
		if r.directing {
			if done, err := r.finishDirect(); !done {
				return err
			}
			r.unlimitRest()
		}
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
		r.need = wire.FPDUSize(length)
		if len(b) < r.need {
			if direct, err := r.beginDirect(b, length); !direct {
				return err
			}
			continue
		}
		ulpdu, n, err := wire.ParseFPDU(b, r.link.agreed.crc)
		if err != nil {
			return r.fault(err, nil, 0)
		}
		if err = r.handle(ulpdu); err != nil {
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
	if err := r.arrive(&r.h, payload); err != nil {
		return r.fault(err, ulpdu, len(ulpdu))
	}
	return nil
}

// arrive takes a segment with its payload.
func (r *receiver) arrive(h *wire.Header, payload []byte) error {
	if !carries(h.Opcode) {
		return r.control(h, payload)
	}
	if err := r.begin(h, len(payload)); err != nil {
		return err
	}
	if !r.store(payload) {
		return r.storeFault(h.Opcode)
	}
	return r.finishSegment(h, len(payload))
}

// carries reports whether the payload of a message is placed in memory.
func carries(op wire.Opcode) bool {
	return op == wire.OpWrite || op == wire.OpReadResponse || op.Send()
}

// begin checks a segment of n octets and sets dst to their target.
func (r *receiver) begin(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		return r.beginWrite(h, n)
	case wire.OpReadResponse:
		return r.beginReadResponse(h, n)
	default:
		return r.beginSend(h, n)
	}
}

// finishSegment records that a segment has been placed.
func (r *receiver) finishSegment(h *wire.Header, n int) error {
	switch h.Opcode {
	case wire.OpWrite:
		r.finishWrite(h, n)
		return nil
	case wire.OpReadResponse:
		r.finishReadResponse(h, n)
		return nil
	default:
		return r.finishSend(h, n)
	}
}

// store copies octets to dst, which begin has set. It returns false if the key is dead.
func (r *receiver) store(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	r.touch.Add(1)
	for len(b) > 0 {
		mem := r.mem.next(r.dst, len(b))
		if mem == nil {
			r.touch.Add(1)
			return false
		}
		yield.Point()
		n := copy(mem, b)
		r.dst.off += uint32(n)
		b = b[n:]
	}
	r.touch.Add(1)
	return true
}
