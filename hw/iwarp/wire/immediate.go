package wire

// ImmediateSize is the size of an [Immediate] in octets.
const ImmediateSize = 8

// Immediate is the uninterpreted data that an Immediate Data message carries, with or
// without solicited event (RFC 7306 section 6.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Immediate Data                         |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
type Immediate [ImmediateSize]byte

// Append appends the data.
func (i *Immediate) Append(dst []byte) []byte { return append(dst, i[:]...) }

// Parse takes the data that begins b, which follows the [Header]. The error is
// [ErrIncomplete].
func (i *Immediate) Parse(b []byte) (n int, err error) {
	if len(b) < ImmediateSize {
		return 0, ErrIncomplete
	}
	return copy(i[:], b), nil
}
