package wire

import "encoding/binary"

// Sizes of an FPDU's parts, in octets (RFC 5044 section 4.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|         ULPDU_Length          |                               |
//	+-------------------------------+                               +
//	~                             ULPDU                             ~
//	|                               +-------------------------------+
//	|                               |        PAD (0-3 octets)       |
//	+-------------------------------+-------------------------------+
//	|                              CRC                              |
//	+---------------------------------------------------------------+
const (
	FPDULengthSize = 2 // ULPDU_Length
	CRCSize        = 4
	FPDUOverhead   = FPDULengthSize + CRCSize // octets that an FPDU adds to its ULPDU, without pad and markers
	MaxTrailerSize = fpduAlign - 1 + CRCSize  // pad and CRC

	fpduAlign = 4 // an FPDU's size is a multiple of this
)

// PadSize is the number of pad octets that follow a ULPDU of length octets.
func PadSize(length int) int { return -(FPDULengthSize + length) & (fpduAlign - 1) }

// FPDUSize is the size of the FPDU around a ULPDU of length octets, without markers.
func FPDUSize(length int) int { return FPDUOverhead + length + PadSize(length) }

// ULPDULength is the ULPDU_Length in b, which begins with an FPDU's first octet
// and holds at least [FPDULengthSize] octets.
func ULPDULength(b []byte) int { return int(binary.BigEndian.Uint16(b)) }

// AppendFPDU appends a whole FPDU around the ULPDU that the parts make up. It panics if
// they have more than 65535 octets together. Without crc the CRC field is zero.
func AppendFPDU(dst []byte, crc bool, parts ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0) // SealFPDU sets ULPDU_Length
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return SealFPDU(dst, start, crc)
}

// SealFPDU completes the FPDU that begins at dst[start] and whose ULPDU ends dst: it
// sets ULPDU_Length and appends the pad and the CRC, which is zero without crc. It
// panics if the ULPDU is longer than 65535 octets.
func SealFPDU(dst []byte, start int, crc bool) []byte {
	length := putLength(dst[start:], len(dst)-start-FPDULengthSize)
	if pad := PadSize(length); pad > 0 {
		dst = append(dst, padding[:pad]...)
	}
	var sum uint32
	if crc {
		sum = UpdateCRC(0, dst[start:])
	}
	return AppendCRC(dst, sum)
}

// putLength sets ULPDU_Length. A length that does not fit is the caller's mistake and
// would derail the stream, so putLength panics.
func putLength(b []byte, length int) int {
	if length != int(uint16(length)) {
		panic("wire: ULPDU longer than 65535 octets")
	}
	binary.BigEndian.PutUint16(b, uint16(length))
	return length
}

// AppendTrailer appends the pad and CRC that follow a ULPDU of length octets. sum is the
// CRC of the FPDU up to the ULPDU's last octet; without crc AppendTrailer ignores sum
// and the CRC field is zero.
func AppendTrailer(dst []byte, length int, sum uint32, crc bool) []byte {
	pad := padding[:PadSize(length)]
	dst = append(dst, pad...)
	if crc {
		sum = UpdateCRC(sum, pad)
	} else {
		sum = 0
	}
	return AppendCRC(dst, sum)
}

var padding [fpduAlign - 1]byte

// ParseTrailer checks the pad and CRC of a ULPDU of length octets, which begin b, and
// returns their size. sum is as for AppendTrailer. The pad's octets matter to the CRC
// alone; without crc ParseTrailer checks nothing (RFC 5044 section 4.1). The error is
// [ErrIncomplete] or [ErrCRC].
func ParseTrailer(b []byte, length int, sum uint32, crc bool) (n int, err error) {
	pad := PadSize(length)
	n = pad + CRCSize
	if len(b) < n {
		return 0, ErrIncomplete
	}
	if crc && UpdateCRC(sum, b[:pad]) != fieldCRC(b[pad:]) {
		return 0, ErrCRC
	}
	return n, nil
}

// ParseFPDU takes the FPDU without markers that begins b. The ULPDU aliases b. ParseFPDU
// checks the CRC if crc is set, and leaves the lengths in the ULPDU to [Header.Parse].
// The error is [ErrIncomplete] or [ErrCRC].
func ParseFPDU(b []byte, crc bool) (ulpdu []byte, n int, err error) {
	if len(b) < FPDULengthSize {
		return nil, 0, ErrIncomplete
	}
	length := ULPDULength(b)
	if n = FPDUSize(length); len(b) < n {
		return nil, 0, ErrIncomplete
	}
	if crc && !IntactFPDU(b[:n]) {
		return nil, 0, ErrCRC
	}
	end := FPDULengthSize + length
	return b[FPDULengthSize:end:end], n, nil
}

// IntactFPDU reports whether an FPDU without markers, which b is, has the right CRC.
func IntactFPDU(b []byte) bool {
	n := len(b) - CRCSize
	return UpdateCRC(0, b[:n]) == fieldCRC(b[n:])
}
