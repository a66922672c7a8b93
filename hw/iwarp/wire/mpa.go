package wire

import "encoding/binary"

// Sizes of an MPA Request or Reply Frame, in octets; the drawing is over
// [MPAFrame].
const (
	MPAHeaderSize = 20
	// MaxPrivate is the most private data, an EnhancedData included.
	MaxPrivate = 512
	// MaxPrivateEnhanced is the most private data behind an EnhancedData.
	MaxPrivateEnhanced = MaxPrivate - EnhancedDataSize
	// MaxPrivateSiw is the most private data that siw and librdmacm carry unharmed
	// behind an EnhancedData: both hold its length in eight bits.
	MaxPrivateSiw = 248
	// MaxMPASize is the size of the largest frame.
	MaxMPASize = MPAHeaderSize + MaxPrivate

	keySize      = 16
	offFlags     = 16
	offRevision  = 17
	offPDLength  = 18
	requestKey   = "MPA ID Req Frame"
	replyKey     = "MPA ID Rep Frame"
	flagMarkers  = 0x80
	flagCRC      = 0x40
	flagReject   = 0x20
	flagEnhanced = 0x10
	flagBigFPDU  = 0x08
)

// Revisions of MPA.
const (
	MPARevision1 = 1 // RFC 5044
	MPARevision2 = 2 // RFC 6581
)

// MPAFrameSize is the size of the frame that begins b, according to its PD_Length, or
// [MPAHeaderSize] while b has only part of the header. A caller uses it after a parse
// has returned [ErrIncomplete]: the parse has then checked the header, and the size is
// [MaxMPASize] at most.
func MPAFrameSize(b []byte) int {
	if len(b) < MPAHeaderSize {
		return MPAHeaderSize
	}
	return MPAHeaderSize + int(binary.BigEndian.Uint16(b[offPDLength:]))
}

// MPAFrame is the frame with which an initiator opens a stream, an [MPARequest], or with which
// a responder answers one, an [MPAReply] (RFC 5044 section 7.1.1, RFC 6581 section 6):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	~    Key: "MPA ID Req Frame" or "MPA ID Rep Frame" (16 octets)  ~
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|R|S|  Res  |      Rev      |           PD_Length           |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	~       Private Data, which with S begins with EnhancedData     ~
//	+---------------------------------------------------------------+
type MPAFrame struct {
	Revision uint8 // [MPARevision1] or [MPARevision2]
	// Markers is M: the frame's sender wants markers in what it receives.
	Markers bool
	// CRC is C: the frame's sender wants CRCs, which then go both ways. siw as an initiator
	// goes by the reply's C bit alone, and not by the request's.
	CRC bool
	// Reject is R: the responder does not want the connection. A request has no R.
	Reject bool
	// BigFPDU is a reserved bit, 0x08, with which this library, and siw if built so,
	// say that they take FPDUs longer than a TCP segment. A peer that knows the bit
	// echoes it.
	BigFPDU bool
	// Enhanced is S: the frame has Data. Revision 1 has neither.
	Enhanced bool
	Data     EnhancedData
	// Private is the consumer's private data, [MaxPrivate] octets at most, or
	// [MaxPrivateEnhanced] with Enhanced. In a parsed frame it aliases the input.
	Private []byte
}

type (
	// MPARequest is an initiator's frame.
	MPARequest MPAFrame
	// MPAReply is a responder's frame. It has the request's Revision and Enhanced, even if it is
	// a reject.
	MPAReply MPAFrame
)

// Append appends the frame. It panics if Private is longer than its limit.
func (r *MPARequest) Append(dst []byte) []byte { return (*MPAFrame)(r).append(dst, requestKey) }

// Append appends the frame. It panics if Private is longer than its limit.
func (r *MPAReply) Append(dst []byte) []byte { return (*MPAFrame)(r).append(dst, replyKey) }

// ParseMPARequest takes the request that begins b. The error is [ErrIncomplete] (see
// [MPAFrameSize]), or one of the ErrMPA values as soon as the octets at hand show it.
func ParseMPARequest(b []byte) (r MPARequest, n int, err error) {
	n, err = (*MPAFrame)(&r).parse(b, requestKey, replyKey)
	return r, n, err
}

// ParseMPAReply takes the reply that begins b. The errors are those of
// [ParseMPARequest]. The caller checks that the reply fits the request ([ErrMPAMode]).
func ParseMPAReply(b []byte) (r MPAReply, n int, err error) {
	n, err = (*MPAFrame)(&r).parse(b, replyKey, requestKey)
	return r, n, err
}

// flag is bit if set.
func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// append appends the frame. It sends the S bit and the EnhancedData only together, and
// only with a revision that has them: siw misreads any other combination, and one of
// them crashes its kernel.
func (f *MPAFrame) append(dst []byte, key string) []byte {
	size := len(f.Private)
	enhanced := f.Enhanced && f.Revision >= MPARevision2
	if enhanced {
		size += EnhancedDataSize
	}
	if size > MaxPrivate {
		panic("wire: MPA private data longer than 512 octets")
	}
	flags := flag(f.Markers, flagMarkers) | flag(f.CRC, flagCRC) | flag(f.Reject && key == replyKey, flagReject) |
		flag(enhanced, flagEnhanced) | flag(f.BigFPDU, flagBigFPDU)
	dst = append(dst, key...)
	dst = append(dst, flags, f.Revision)
	dst = binary.BigEndian.AppendUint16(dst, uint16(size))
	if enhanced {
		dst = f.Data.Append(dst)
	}
	return append(dst, f.Private...)
}

// parse takes the frame that begins b. It reports a wrong key at the first wrong octet,
// so that the caller does not wait for more from a peer that speaks another protocol. It sets
// the fields when the frame is whole.
func (f *MPAFrame) parse(b []byte, key, otherKey string) (n int, err error) {
	k := min(len(b), keySize)
	if got := string(b[:k]); got != key[:k] {
		if got == otherKey[:k] {
			return 0, ErrMPARole
		}
		return 0, ErrMPAKey
	}
	if len(b) < MPAHeaderSize {
		return 0, ErrIncomplete
	}
	flags, revision := b[offFlags], b[offRevision]
	if revision != MPARevision1 && revision != MPARevision2 {
		return 0, ErrMPARevision
	}
	// S is a reserved bit in revision 1.
	enhanced := flags&flagEnhanced != 0 && revision >= MPARevision2
	n = MPAFrameSize(b)
	if n > MaxMPASize {
		return 0, ErrMPAPrivateLong
	}
	if enhanced && n < MPAHeaderSize+EnhancedDataSize {
		return 0, ErrMPAPrivateShort
	}
	if len(b) < n {
		return 0, ErrIncomplete
	}
	*f = MPAFrame{
		Revision: revision, Markers: flags&flagMarkers != 0, CRC: flags&flagCRC != 0,
		Reject: flags&flagReject != 0 && key == replyKey, BigFPDU: flags&flagBigFPDU != 0,
		Enhanced: enhanced, Private: b[MPAHeaderSize:n:n],
	}
	if enhanced {
		k, _ = f.Data.Parse(f.Private)
		f.Private = f.Private[k:]
	}
	return n, nil
}
