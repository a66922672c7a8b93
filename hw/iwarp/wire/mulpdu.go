package wire

// Limits of a ULPDU's length (RFC 5044 section 3).
const (
	// MaxULPDU is the longest ULPDU that a sender may send. A receiver meets
	// longer ones, up to 65535 octets: siw fills a 64 KiB segment of a loopback
	// device to the brim.
	MaxULPDU = 64768
	// MinMULPDU is the least that MULPDU may say, however small the segments.
	MinMULPDU = 128
)

// MULPDU is the longest ULPDU whose FPDU fits one TCP segment of emss octets
// payload (RFC 5044 section 4.5), between [MinMULPDU] and [MaxULPDU]; markers
// says whether the stream has some. A tagged segment's payload is
// [TaggedHeaderSize] less, an untagged one's [UntaggedHeaderSize].
func MULPDU(emss int, markers bool) int {
	n := emss - (FPDUOverhead + emss%fpduAlign)
	if markers {
		n -= MarkerSize * ((emss + MarkerInterval - 1) / MarkerInterval)
	}
	return min(max(n, MinMULPDU), MaxULPDU)
}
