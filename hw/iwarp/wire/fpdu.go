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
	FPDUOverhead   = FPDULengthSize + CRCSize // what an FPDU adds to its ULPDU, pad and markers aside
	MaxTrailerSize = fpduAlign - 1 + CRCSize  // pad and CRC

	fpduAlign = 4 // an FPDU's size is a multiple of it
)

// PadSize is how many octets of pad follow a ULPDU of length octets.
func PadSize(length int) int { return -(FPDULengthSize + length) & (fpduAlign - 1) }

// FPDUSize is the size of the FPDU around a ULPDU of length octets, markers aside.
func FPDUSize(length int) int { return FPDUOverhead + length + PadSize(length) }

// ULPDULength is the ULPDU_Length in b, which begins with an FPDU's first octet
// and holds at least [FPDULengthSize] octets.
func ULPDULength(b []byte) int { return int(binary.BigEndian.Uint16(b)) }

// AppendFPDU appends a whole FPDU around the ULPDU that the parts make up,
// together at most 65535 octets; more panics. Without crc the CRC field is zero.
func AppendFPDU(dst []byte, crc bool, parts ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0) // ULPDU_Length; SealFPDU knows it
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return SealFPDU(dst, start, crc)
}

// SealFPDU completes the FPDU that begins at dst[start] and whose ULPDU ends
// dst: it sets ULPDU_Length and appends pad and CRC, which is zero without crc.
// A ULPDU over 65535 octets panics.
func SealFPDU(dst []byte, start int, crc bool) []byte {
	length := putLength(dst[start:], len(dst)-start-FPDULengthSize)
	var sum uint32
	if crc {
		sum = UpdateCRC(0, dst[start:])
	}
	return AppendTrailer(dst, length, sum, crc)
}

// putLength sets ULPDU_Length. A length that does not fit is the caller's
// mistake and would derail the stream, so it does not go by silently.
func putLength(b []byte, length int) int {
	if length != int(uint16(length)) {
		panic("wire: ULPDU longer than 65535 octets")
	}
	binary.BigEndian.PutUint16(b, uint16(length))
	return length
}

// AppendTrailer appends the pad and CRC that follow a ULPDU of length octets.
// sum is the CRC of the FPDU up to the ULPDU's last octet; without crc it does
// not count and the CRC field is zero.
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

// ParseTrailer checks the pad and CRC, which begin b, of a ULPDU of length
// octets, and reports their size. sum is as for AppendTrailer. The pad's octets
// matter to the CRC alone; without crc, nothing is checked (RFC 5044 section
// 4.1). The error is [ErrIncomplete] or [ErrCRC].
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

// ParseFPDU takes the FPDU without markers that begins b. The ULPDU aliases b;
// its own lengths are not checked, that is [Header.Parse]'s. With crc the CRC
// is. The error is [ErrIncomplete] or [ErrCRC].
func ParseFPDU(b []byte, crc bool) (ulpdu []byte, n int, err error) {
	if len(b) < FPDULengthSize {
		return nil, 0, ErrIncomplete
	}
	length := ULPDULength(b)
	if n = FPDUSize(length); len(b) < n {
		return nil, 0, ErrIncomplete
	}
	end := FPDULengthSize + length
	if crc && UpdateCRC(0, b[:n-CRCSize]) != fieldCRC(b[n-CRCSize:]) {
		return nil, 0, ErrCRC
	}
	return b[FPDULengthSize:end:end], n, nil
}
