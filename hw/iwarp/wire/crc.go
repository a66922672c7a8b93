package wire

import (
	"encoding/binary"
	"hash/crc32"
	"unsafe"
)

// castagnoli is the table with which package crc32 uses the processor's CRC
// instructions, if it has any.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// foldLeast is the least number of bytes that foldCRC takes, and foldBlock that of which it
// takes multiples.
const (
	foldLeast = 256
	foldBlock = 64
)

// UpdateCRC adds p to sum, a CRC-32C (RFC 5044 section 4.4), and returns the result;
// the CRC of no octets is 0. The CRC of an FPDU covers all octets from ULPDU_Length, or
// the marker right before it, to the last one before the CRC field.
func UpdateCRC(sum uint32, p []byte) uint32 {
	if n := len(p) &^ (foldBlock - 1); canFold && n >= foldLeast {
		sum = ^foldCRC(^sum, unsafe.SliceData(p), n)
		p = p[n:]
	}
	if canWord && len(p) <= wordsMost {
		return ^wordCRC(^sum, unsafe.SliceData(p), len(p))
	}
	return crc32.Update(sum, castagnoli, p)
}

// wordsMost is the most bytes whose CRC is computed one word after the other. Of more bytes
// package crc32 computes three parts at the same time.
const wordsMost = 503

// CopyCRC copies src to dst, which is as long, and adds it to sum as [UpdateCRC] does. The
// CRC is that of the copy, whoever writes to src meanwhile.
func CopyCRC(sum uint32, dst, src []byte) uint32 {
	dst = dst[:len(src)]
	if n := len(src) &^ (foldBlock - 1); canFold && n >= foldLeast {
		sum = ^copyFoldCRC(^sum, unsafe.SliceData(dst), unsafe.SliceData(src), n)
		dst, src = dst[n:], src[n:]
	}
	for len(src) > copyBlock {
		copy(dst[:copyBlock], src)
		sum = crc32.Update(sum, castagnoli, dst[:copyBlock])
		dst, src = dst[copyBlock:], src[copyBlock:]
	}
	copy(dst, src)
	return UpdateCRC(sum, dst)
}

// copyBlock bytes that were copied are still in the nearest cache when their CRC is
// computed.
const copyBlock = 8 << 10

// AppendCRC appends a CRC field. The field is little-endian: iSCSI's bit order,
// which RFC 5044 adopts, puts the reflected sum's low octet first.
func AppendCRC(dst []byte, sum uint32) []byte { return binary.LittleEndian.AppendUint32(dst, sum) }

// fieldCRC is the sum in a CRC field.
func fieldCRC(field []byte) uint32 { return binary.LittleEndian.Uint32(field) }
