package wire

import (
	"encoding/binary"
	"math/bits"
)

// TerminateControlSize is the size in octets of a Terminate's control field with the
// reserved bits after it, the only part that every Terminate has.
const TerminateControlSize = 4

// The header control bits of a Terminate.
const (
	termLength = 0x80 // M
	termDDP    = 0x40 // D
	termRead   = 0x20 // R
	termFlags  = termLength | termDDP | termRead

	// swappedFlags are the same three bits at siw's places: 0x01, 0x02 and 0x04.
	swappedFlags = 0x07

	segmentLengthSize = 2
)

// Terminate is the RDMAP header of a Terminate (RFC 5040 section 4.8), the last
// message of a stream, number 1 of its queue:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+---------------+-+-+-+-------------------------+
//	| Layer | EType |  Error Code   |M|D|R|        Reserved         |
//	+-------+-------+---------------+-+-+-+-------------------------+
//	|  DDP Segment Length  (if any) |                               |
//	+-------------------------------+                               +
//	//                Terminated DDP Header (if any)                //
//	+---------------------------------------------------------------+
//	//                Terminated RDMA Header (if any)               //
//	+---------------------------------------------------------------+
//
// siw on a little-endian machine swaps the bits of the first and the third octet, as C
// bit-fields do: EType and Layer change places, and M, D and R are 0x01, 0x02 and 0x04.
// [ParseTerminate] tells the two forms apart; Append uses the RFC's form.
type Terminate struct {
	Code TermCode
	// Swapped says that the Terminate came in siw's form. Append ignores it.
	Swapped bool

	// LengthValid is M: Length is the length of the terminated segment, DDP header
	// and payload. siw counts the payload only.
	LengthValid bool
	Length      uint16
	// Header is the terminated DDP header: 14 octets if its first bit says tagged, else
	// 18; empty without D. Its contents are not checked: a caller parses it with
	// [Header.Parse]. In siw's quote of a Read Request the MSN is wrong: a caller finds
	// the request by Read's sink.
	Header []byte
	// HasRead is R. Read is then the part of the terminated Read Request that was still
	// to be done.
	HasRead bool
	Read    ReadRequest
}

// NewTerminate makes the Terminate with that code for an error in the ULPDU that begins
// b and has length octets. It quotes the headers that RFC 5040 figure 10 and RFC 5041
// section 7.1 ask for, as far as b has them; Header aliases b. An empty b stands for an
// error that no message caused.
func NewTerminate(code TermCode, b []byte, length int) Terminate {
	t := Terminate{Code: code}
	if code.Layer() == LayerLLP || code.Type() == TypeCatastrophic {
		return t
	}
	size := ddpHeaderSize(b)
	if size == 0 || len(b) < size || length < size {
		return t
	}
	t.LengthValid, t.Length = true, uint16(length)
	t.Header = b[:size:size]
	if code.Layer() == LayerRDMAP && code.Type() == TypeProtection && isReadRequest(t.Header) &&
		length >= size+ReadRequestSize && len(b) >= size+ReadRequestSize {
		t.HasRead = true
		_, _ = t.Read.Parse(b[size:]) // sets the fields also of a request that wraps
	}
	return t
}

// ddpHeaderSize is the size of the DDP header that begins b; 0 if b is empty.
func ddpHeaderSize(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case b[0]&ddpTagged != 0:
		return TaggedHeaderSize
	}
	return UntaggedHeaderSize
}

// isReadRequest reports whether header, which is complete or empty, is that of a Read
// Request.
func isReadRequest(header []byte) bool {
	return len(header) == UntaggedHeaderSize && Opcode(header[1]&opcodeMask) == OpReadRequest
}

// Append appends the Terminate's header, which follows the [Header] of its
// message. A DDP header of a wrong size is left out.
func (t *Terminate) Append(dst []byte) []byte {
	var flags byte
	if t.LengthValid {
		flags |= termLength
	}
	if len(t.Header) > 0 && len(t.Header) == ddpHeaderSize(t.Header) {
		flags |= termDDP
	}
	if t.HasRead {
		flags |= termRead
	}
	dst = append(dst, byte(t.Code>>8), byte(t.Code), flags, 0)
	if flags&(termLength|termDDP) != 0 {
		dst = binary.BigEndian.AppendUint16(dst, t.Length)
	}
	if flags&termDDP != 0 {
		dst = append(dst, t.Header...)
	}
	if flags&termRead != 0 {
		dst = t.Read.Append(dst)
	}
	return dst
}

// ParseTerminate takes the Terminate's header that b is, in either form. A few
// Terminates are valid in both forms. Of these established decides, which says that a
// message went either way before: an MPA start-up code can't come later, nor can a
// complaint about a message come earlier. Octets left over are no error. n is the number
// of octets used.
//
// The error is [ErrTerminate] when b ends early. If b has the control field,
// ParseTerminate then still sets Code and each part that b has whole.
func ParseTerminate(b []byte, established bool) (t Terminate, n int, err error) {
	if len(b) < TerminateControlSize {
		return t, 0, ErrTerminate
	}
	flags := t.parseControl(b, established)
	rest := b[TerminateControlSize:]
	// M or D, because some adapters send the length without the header.
	if flags&(termLength|termDDP) != 0 {
		if len(rest) < segmentLengthSize {
			return t, 0, ErrTerminate
		}
		t.LengthValid = flags&termLength != 0
		t.Length = binary.BigEndian.Uint16(rest)
		rest = rest[segmentLengthSize:]
	}
	if flags&termDDP != 0 {
		size := ddpHeaderSize(rest)
		if size == 0 || len(rest) < size {
			return t, 0, ErrTerminate
		}
		t.Header = rest[:size:size]
		rest = rest[size:]
	}
	if flags&termRead != 0 {
		switch {
		case len(rest) >= ReadRequestSize:
			t.HasRead = true
			_, _ = t.Read.Parse(rest) // sets the fields also of a request that wraps
			rest = rest[ReadRequestSize:]
		case len(t.Header) == 0 || isReadRequest(t.Header):
			return t, 0, ErrTerminate
		default:
			// siw sets R for every protection error, but quotes an RDMA header only
			// if the message had one.
		}
	}
	return t, len(b) - len(rest), nil
}

// parseControl sets Code and Swapped from the control field that begins b, and returns
// the flags at the RFC's places.
func (t *Terminate) parseControl(b []byte, established bool) (flags byte) {
	t.Code = TermCode(binary.BigEndian.Uint16(b))
	flags = b[2] & termFlags
	swapped := t.Code&0x00ff | TermCode(bits.RotateLeft8(b[0], 4))<<8
	switch low := b[2] & swappedFlags; {
	case flags == 0 && low != 0:
		t.Swapped = true
		flags = bits.Reverse8(low)
	case !t.Code.possible():
		t.Swapped = swapped.possible()
	case flags == 0:
		t.Swapped = ambiguous(t.Code, established)
	}
	if t.Swapped {
		t.Code = swapped
	}
	return flags
}

// ambiguous reports whether code, which came without flags, counts as siw's form although
// it is valid in the RFC's form.
func ambiguous(code TermCode, established bool) bool {
	c := code.Code()
	switch {
	case code.Layer() == LayerLLP: // in siw's form: RDMAP, remote operation
		return established && (c >= TermOperationVersion.Code() && c <= TermOperationInvalidate.Code() ||
			c == TermOperationUnspecified.Code())
	case code.Layer() == LayerRDMAP && code.Type() == TypeOperation: // in siw's form: MPA
		return c >= TermMPALost.Code() && c <= TermMPARequest.Code() ||
			!established && c >= TermMPALocal.Code() && c <= TermMPARTR.Code()
	}
	return false
}
