package wire

import "encoding/binary"

// Sizes of an MPA Request or Reply Frame, in octets; the drawings are over
// [MPARequest] and [MPAReply].
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

// mpaFrame is what requests and replies have in common.
type mpaFrame struct {
	flags    byte
	revision uint8
	enhanced bool
	data     EnhancedData
	private  []byte
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
func (f *mpaFrame) append(dst []byte, key string) []byte {
	size := len(f.private)
	flags := f.flags
	enhanced := f.enhanced && f.revision >= MPARevision2
	if enhanced {
		flags |= flagEnhanced
		size += EnhancedDataSize
	}
	if size > MaxPrivate {
		panic("wire: MPA private data longer than 512 octets")
	}
	dst = append(dst, key...)
	dst = append(dst, flags, f.revision)
	dst = binary.BigEndian.AppendUint16(dst, uint16(size))
	if enhanced {
		dst = f.data.Append(dst)
	}
	return append(dst, f.private...)
}

// parse takes the frame that begins b. It reports a wrong key at the first wrong octet,
// so that the caller does not wait for more from a peer that speaks another protocol.
func (f *mpaFrame) parse(b []byte, key, otherKey string) (n int, err error) {
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
	f.flags, f.revision = b[offFlags], b[offRevision]
	if f.revision != MPARevision1 && f.revision != MPARevision2 {
		return 0, ErrMPARevision
	}
	// S is a reserved bit in revision 1.
	f.enhanced = f.flags&flagEnhanced != 0 && f.revision >= MPARevision2
	n = MPAFrameSize(b)
	if n > MaxMPASize {
		return 0, ErrMPAPrivateLong
	}
	if f.enhanced && n < MPAHeaderSize+EnhancedDataSize {
		return 0, ErrMPAPrivateShort
	}
	if len(b) < n {
		return 0, ErrIncomplete
	}
	f.private = b[MPAHeaderSize:n:n]
	if f.enhanced {
		f.data.decode(f.private)
		f.private = f.private[EnhancedDataSize:]
	}
	return n, nil
}
