package wire

import "encoding/binary"

// Markers stand in the stream every MarkerInterval octets, the markers counted too
// (RFC 5044 sections 4.2 and 4.3):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|           RESERVED            |            FPDUPTR            |
//	+-------------------------------+-------------------------------+
//
// FPDUPTR is the distance in octets from the ULPDU_Length of the marker's FPDU to the
// marker. A marker between two FPDUs belongs to the second FPDU, and its FPDUPTR is 0; a
// marker between pad and CRC belongs to their FPDU. FPDUs and markers are aligned to 4,
// so a marker never cuts ULPDU_Length or CRC.
const (
	MarkerSize     = 4
	MarkerInterval = 512
)

// toMarker is the distance from stream position pos, which counts octets from the first marker,
// the stream's first octet in full operation, to the first marker at or after it.
func toMarker(pos uint64) int { return int(-pos % MarkerInterval) }

// atMarker reports whether a marker is due at pos.
func atMarker(pos uint64) bool { return toMarker(pos) == 0 }

// MarkedSize is the size, markers included, of the FPDU around a ULPDU of
// length octets that begins at stream position pos; see [AppendMarkedFPDU].
func MarkedSize(pos uint64, length int) int {
	n := FPDUSize(length)
	free := toMarker(pos)
	if n <= free {
		return n
	}
	const between = MarkerInterval - MarkerSize
	return n + MarkerSize*((n-free+between-1)/between)
}

// AppendMarkedFPDU appends, with its markers, the FPDU around the ULPDU that the parts
// make up. It panics if they have more than [MaxULPDU] octets together. pos is the
// position in the stream at which the FPDU begins: 0 for the first FPDU, then the number
// of octets that the earlier calls appended. Without crc the CRC field is zero.
func AppendMarkedFPDU(dst []byte, pos uint64, crc bool, parts ...[]byte) []byte {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	if length > MaxULPDU {
		panic("wire: ULPDU longer than 64768 octets on a stream with markers")
	}
	first := len(dst)
	w := markedWriter{dst: dst, pos: pos, start: pos}
	if atMarker(pos) {
		w.start += MarkerSize
	}
	w.put([]byte{byte(length >> 8), byte(length)})
	for _, p := range parts {
		w.put(p)
	}
	w.put(padding[:PadSize(length)])
	w.mark()
	var sum uint32
	if crc {
		sum = UpdateCRC(0, w.dst[first:])
	}
	return AppendCRC(w.dst, sum)
}

// markedWriter puts markers between the octets of one FPDU.
type markedWriter struct {
	dst   []byte
	pos   uint64 // position in the stream of dst's end
	start uint64 // position in the stream of ULPDU_Length
}

// mark appends a marker if one is due.
func (w *markedWriter) mark() {
	if !atMarker(w.pos) {
		return
	}
	var ptr uint16 // 0 before ULPDU_Length
	if w.pos > w.start {
		ptr = uint16(w.pos - w.start)
	}
	w.dst = binary.BigEndian.AppendUint32(w.dst, uint32(ptr))
	w.pos += MarkerSize
}

// put appends p, and the markers due in it.
func (w *markedWriter) put(p []byte) {
	for len(p) > 0 {
		w.mark()
		n := min(len(p), toMarker(w.pos))
		w.dst = append(w.dst, p[:n]...)
		w.pos += uint64(n)
		p = p[n:]
	}
}

// ParseMarkedFPDU takes the FPDU with markers that begins b, at stream position pos, and
// appends its ULPDU, without markers, to dst; the next position is pos+n. dst may be
// b[:0]: the ULPDU then replaces the FPDU. ParseMarkedFPDU checks first the CRC, if crc
// is set, and then every marker. The error is [ErrIncomplete], [ErrULPDULong], [ErrCRC]
// or [ErrMarker].
func ParseMarkedFPDU(dst, b []byte, pos uint64, crc bool) (out []byte, n int, err error) {
	head := 0
	if atMarker(pos) {
		head = MarkerSize
	}
	if len(b) < head+FPDULengthSize {
		return dst, 0, ErrIncomplete
	}
	length := ULPDULength(b[head:])
	if length > MaxULPDU {
		return dst, 0, ErrULPDULong
	}
	if n = MarkedSize(pos, length); len(b) < n {
		return dst, 0, ErrIncomplete
	}
	if crc && UpdateCRC(0, b[:n-CRCSize]) != fieldCRC(b[n-CRCSize:]) {
		return dst, 0, ErrCRC
	}
	// Check all markers before octets move: dst may be b[:0].
	for i := toMarker(pos); i < n; i += MarkerInterval {
		// Receivers take the low two bits as zero (RFC 5044 section 4.2).
		if ptr := binary.BigEndian.Uint16(b[i+2:]) &^ 3; int(ptr) != max(i-head, 0) {
			return dst, 0, ErrMarker
		}
	}
	return appendUnmarked(dst, b[head+FPDULengthSize:n], pos+uint64(head+FPDULengthSize), length), n, nil
}

// appendUnmarked appends the first length octets of b that are not markers; b
// begins at stream position pos.
func appendUnmarked(dst, b []byte, pos uint64, length int) []byte {
	for length > 0 {
		if atMarker(pos) {
			b = b[MarkerSize:]
			pos += MarkerSize
		}
		k := min(length, toMarker(pos))
		dst = append(dst, b[:k]...)
		b = b[k:]
		pos += uint64(k)
		length -= k
	}
	return dst
}
