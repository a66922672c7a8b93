package wire

// Limits of a ULPDU's length (RFC 5044 section 3).
const (
	// MaxULPDU is the longest ULPDU, in octets, that a sender may send. A receiver may
	// get longer ones, up to 65535 octets: siw fills a loopback device's segment of 64
	// KiB completely.
	MaxULPDU = 64768
	// MinMULPDU is the least MULPDU, in octets, however small the segments are.
	MinMULPDU = 128
)

// MULPDU is the length of the longest ULPDU whose FPDU fits one TCP segment with emss
// octets of payload (RFC 5044 section 4.5), at least [MinMULPDU] and at most [MaxULPDU];
// markers says whether the stream has markers. The payload of a tagged DDP segment is
// shorter by [TaggedHeaderSize], that of an untagged one by [UntaggedHeaderSize].
func MULPDU(emss int, markers bool) int {
	n := emss - (FPDUOverhead + emss%fpduAlign)
	if markers {
		n -= MarkerSize * ((emss + MarkerInterval - 1) / MarkerInterval)
	}
	return min(max(n, MinMULPDU), MaxULPDU)
}
