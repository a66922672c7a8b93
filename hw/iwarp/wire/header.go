package wire

import (
	"encoding/binary"
	"math"
)

// Sizes of a DDP header with the RDMAP control octet in it, in octets.
const (
	TaggedHeaderSize   = 14
	UntaggedHeaderSize = 18
	// MaxFramedHeaderSize is the most that [Header.AppendFramed] appends.
	MaxFramedHeaderSize = FPDULengthSize + UntaggedHeaderSize
)

// The bits of the two control octets.
const (
	ddpTagged      = 0x80
	ddpLast        = 0x40
	ddpVersionMask = 0x03
	ddpVersion     = 0x01

	rdmapVersionMask = 0xc0
	rdmapVersion     = 0x40
	opcodeMask       = 0x0f
)

// Offsets in a header. The first field after the control octets is the data
// sink's STag in a tagged header and the STag to invalidate in an untagged one.
const (
	offSTag = 2
	offTO   = 6
	offQN   = 6
	offMSN  = 10
	offMO   = 14
)

// Header is the DDP header of a segment together with RDMAP's control octet,
// which begin every ULPDU (RFC 5041 sections 4.1 to 4.3, RFC 5040 section 4.1).
// Tagged:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	                                +-+-+-------+---+---+---+-------+
//	                                |1|L| Resrv | DV| RV|Rsv| Opcode|
//	+-------------------------------+-+-+-------+---+---+---+-------+
//	|                             STag                              |
//	+---------------------------------------------------------------+
//	|                              TO                               |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//
// and untagged:
//
//	                                +-+-+-------+---+---+---+-------+
//	                                |0|L| Resrv | DV| RV|Rsv| Opcode|
//	+-------------------------------+-+-+-------+---+---+---+-------+
//	|                        Invalidate STag                        |
//	+---------------------------------------------------------------+
//	|                              QN                               |
//	+---------------------------------------------------------------+
//	|                              MSN                              |
//	+---------------------------------------------------------------+
//	|                              MO                               |
//	+---------------------------------------------------------------+
//
// DV and RV are 1. T and QN follow from the opcode and have no field here. A caller may
// use one Header again and again, because Parse sets every field.
type Header struct {
	// TO is the tagged offset of the segment's first octet, in tagged messages only.
	TO uint64
	// STag is the data sink's STag in a tagged message, and the STag to invalidate in
	// a Send with Invalidate; 0 in other messages. In a tagged segment without payload
	// neither STag nor TO means anything.
	STag uint32
	// MSN is the number of an untagged message on its queue; the first message has 1.
	MSN uint32
	// MO is the offset of an untagged segment's first octet in its message.
	MO     uint32
	Opcode Opcode
	Last   bool // the message's last segment
}

// Size is the size of the header in octets.
func (h *Header) Size() int {
	if h.Opcode.Tagged() {
		return TaggedHeaderSize
	}
	return UntaggedHeaderSize
}

// Append appends the header, which begins a ULPDU.
func (h *Header) Append(dst []byte) []byte {
	var b [UntaggedHeaderSize]byte
	return append(dst, b[:h.put(&b)]...)
}

// AppendFramed appends all that precedes the payload of an FPDU without markers:
// ULPDU_Length, for a ULPDU with payload octets behind the header, and the header.
// payload counts an RDMAP header such as a [ReadRequest] too. AppendFramed panics if the
// ULPDU is longer than 65535 octets.
func (h *Header) AppendFramed(dst []byte, payload int) []byte {
	var b [MaxFramedHeaderSize]byte
	n := h.put((*[UntaggedHeaderSize]byte)(b[FPDULengthSize:]))
	putLength(b[:], n+payload)
	end := len(dst) + FPDULengthSize + n
	return append(dst, b[:]...)[:end] // a copy of a constant size costs no call
}

// put writes the header to b and returns its size.
func (h *Header) put(b *[UntaggedHeaderSize]byte) int {
	info := h.Opcode.info()
	b[0], b[1] = ddpVersion, rdmapVersion|byte(h.Opcode&opcodeMask)
	if h.Last {
		b[0] |= ddpLast
	}
	if info.tagged {
		b[0] |= ddpTagged
		binary.BigEndian.PutUint32(b[offSTag:], h.STag)
		binary.BigEndian.PutUint64(b[offTO:], h.TO)
		return TaggedHeaderSize
	}
	if h.Opcode.Invalidates() {
		binary.BigEndian.PutUint32(b[offSTag:], h.STag)
	}
	binary.BigEndian.PutUint32(b[offQN:], uint32(info.queue))
	binary.BigEndian.PutUint32(b[offMSN:], h.MSN)
	binary.BigEndian.PutUint32(b[offMO:], h.MO)
	return UntaggedHeaderSize
}

// Parse takes the header of the ULPDU that begins b and is length octets long; b need
// not hold more than the ULPDU's header. n is the header's size, so the payload has
// length-n octets.
//
// Parse checks all that needs no state: that length suffices for the header, and is
// right for a message of fixed size; the versions; opcode, buffer model and queue
// against each other; that offset and length do not wrap; that a message which must be
// one segment is one. The caller checks the sequence, the buffers, and whether the
// stream agreed on RFC 7306's opcodes.
//
// The error is [ErrIncomplete] when b is shorter than both the header and length, and an
// [*Error] otherwise; after an error the fields mean nothing.
func (h *Header) Parse(b []byte, length int) (n int, err error) {
	if length < TaggedHeaderSize {
		return 0, ErrULPDUShort
	}
	if len(b) < TaggedHeaderSize {
		return 0, ErrIncomplete
	}
	if b[0]&ddpTagged != 0 {
		return h.parseTagged((*[TaggedHeaderSize]byte)(b), length)
	}
	if length < UntaggedHeaderSize {
		return 0, ErrULPDUShort
	}
	if len(b) < UntaggedHeaderSize {
		return 0, ErrIncomplete
	}
	return h.parseUntagged((*[UntaggedHeaderSize]byte)(b), length)
}

// parseTagged parses a tagged header.
func (h *Header) parseTagged(b *[TaggedHeaderSize]byte, length int) (n int, err error) {
	if b[0]&ddpVersionMask != ddpVersion {
		return 0, ErrTaggedVersion
	}
	info, err := h.parseControl(b[0], b[1])
	if err != nil {
		return 0, err
	}
	if !info.tagged {
		return 0, ErrOpcodeModel
	}
	h.STag = binary.BigEndian.Uint32(b[offSTag:])
	h.TO = binary.BigEndian.Uint64(b[offTO:])
	h.MSN, h.MO = 0, 0
	// RFC 5041 section 7.1: the 64-bit sum of TO and payload length must not wrap;
	// section 5.2: without payload TO does not matter.
	if payload := uint64(length - TaggedHeaderSize); payload > 0 && h.TO+payload < h.TO {
		return 0, ErrTaggedWrap
	}
	return TaggedHeaderSize, nil
}

// parseUntagged parses an untagged header.
func (h *Header) parseUntagged(b *[UntaggedHeaderSize]byte, length int) (n int, err error) {
	if b[0]&ddpVersionMask != ddpVersion {
		return 0, ErrUntaggedVersion
	}
	qn := Queue(binary.BigEndian.Uint32(b[offQN:]))
	if qn >= queues {
		return 0, ErrQueue
	}
	info, err := h.parseControl(b[0], b[1])
	if err != nil {
		return 0, err
	}
	if info.tagged {
		return 0, ErrOpcodeModel
	}
	if info.queue != qn {
		return 0, ErrOpcodeQueue
	}
	h.STag, h.TO = 0, 0
	if h.Opcode.Invalidates() {
		h.STag = binary.BigEndian.Uint32(b[offSTag:])
	}
	h.MSN = binary.BigEndian.Uint32(b[offMSN:])
	h.MO = binary.BigEndian.Uint32(b[offMO:])
	payload := length - UntaggedHeaderSize
	if info.extra != 0 {
		return h.checkSingle(info, payload)
	}
	if uint64(h.MO)+uint64(payload) > math.MaxUint32 {
		return 0, ErrTooLong // RFC 5041 section 5.2: messages are shorter than 2^32
	}
	return UntaggedHeaderSize, nil
}

// parseControl takes DDP's and RDMAP's control octets.
func (h *Header) parseControl(ddp, rdmap byte) (*opcodeInfo, error) {
	if rdmap&rdmapVersionMask != rdmapVersion {
		return nil, ErrRDMAPVersion
	}
	h.Opcode = Opcode(rdmap & opcodeMask)
	h.Last = ddp&ddpLast != 0
	info := h.Opcode.info()
	if !info.known {
		return nil, ErrOpcode
	}
	return info, nil
}

// checkSingle checks a message whose buffer has room for its RDMAP header and nothing
// else. Only a Terminate may be longer, because the headers that it quotes vary.
func (h *Header) checkSingle(info *opcodeInfo, payload int) (n int, err error) {
	switch {
	case payload < info.extra:
		return 0, ErrULPDUShort
	case h.MO != 0:
		return 0, ErrMO
	case !h.Last, payload > info.extra && h.Opcode != OpTerminate:
		return 0, ErrTooLong
	}
	return UntaggedHeaderSize, nil
}
