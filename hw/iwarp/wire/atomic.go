package wire

import (
	"encoding/binary"
	"math"
)

// AtomicOp is the operation that an Atomic Request asks for (RFC 7306 figure 5).
type AtomicOp uint8

// The atomic operations.
const (
	FetchAdd AtomicOp = 0
	CmpSwap  AtomicOp = 2
)

// atomicOpMask is the AOpCode of the header's first 32 bits.
const atomicOpMask = 0x0f

// AtomicRequestSize is the size of an [AtomicRequest] in octets.
const AtomicRequestSize = 52

// AtomicRequest is the RDMAP header of an Atomic Request (RFC 7306 section
// 5.2.1):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------------------------------+-------+
//	|                      Reserved (Not Used)              |AOpCode|
//	+-------------------------------------------------------+-------+
//	|                       Request Identifier                      |
//	+---------------------------------------------------------------+
//	|                          Remote STag                          |
//	+---------------------------------------------------------------+
//	|                      Remote Tagged Offset                     |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                       Add or Swap Data                        |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                       Add or Swap Mask                        |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                         Compare Data                          |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                         Compare Mask                          |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//
// The plain operations of verbs are a FetchAdd with Mask 0 and a CmpSwap with
// both masks all ones. A FetchAdd ignores Compare and CompareMask: Append sends them,
// and Parse sets them, as zero and all ones.
type AtomicRequest struct {
	TO          uint64 // tagged offset of the target, 8 octets
	Data        uint64 // the value to add, or to store
	Mask        uint64 // FetchAdd: the highest bit of each field; CmpSwap: the bits to store
	Compare     uint64
	CompareMask uint64 // the bits to compare
	ID          uint32 // echoed in the response
	STag        uint32
	Op          AtomicOp
}

// Append appends the request.
func (a *AtomicRequest) Append(dst []byte) []byte {
	compare, mask := a.Compare, a.CompareMask
	if a.Op == FetchAdd {
		compare, mask = 0, math.MaxUint64
	}
	var b [AtomicRequestSize]byte
	binary.BigEndian.PutUint32(b[0:], uint32(a.Op&atomicOpMask))
	binary.BigEndian.PutUint32(b[4:], a.ID)
	binary.BigEndian.PutUint32(b[8:], a.STag)
	binary.BigEndian.PutUint64(b[12:], a.TO)
	binary.BigEndian.PutUint64(b[20:], a.Data)
	binary.BigEndian.PutUint64(b[28:], a.Mask)
	binary.BigEndian.PutUint64(b[36:], compare)
	binary.BigEndian.PutUint64(b[44:], mask)
	return append(dst, b[:]...)
}

// Parse takes the request that begins b, which follows the [Header]. The error is
// [ErrIncomplete], or one with which Parse sets the fields all the same: [ErrAtomicOp], or
// [ErrWrap] when the target would wrap.
// The caller checks that the target is aligned to 8 octets ([ErrMisaligned]): the
// address must be, and TO need not show it.
func (a *AtomicRequest) Parse(b []byte) (n int, err error) {
	if len(b) < AtomicRequestSize {
		return 0, ErrIncomplete
	}
	_ = b[AtomicRequestSize-1]
	a.Op = AtomicOp(b[3] & atomicOpMask)
	a.ID = binary.BigEndian.Uint32(b[4:])
	a.STag = binary.BigEndian.Uint32(b[8:])
	a.TO = binary.BigEndian.Uint64(b[12:])
	a.Data = binary.BigEndian.Uint64(b[20:])
	a.Mask = binary.BigEndian.Uint64(b[28:])
	a.Compare = binary.BigEndian.Uint64(b[36:])
	a.CompareMask = binary.BigEndian.Uint64(b[44:])
	switch a.Op {
	case FetchAdd:
		a.Compare, a.CompareMask = 0, math.MaxUint64
	case CmpSwap:
	default:
		return 0, ErrAtomicOp
	}
	if a.TO+8 < a.TO {
		return 0, ErrWrap
	}
	return AtomicRequestSize, nil
}

// Apply returns the value that replaces old, the value at the request's target (RFC
// 7306 section 5.1). An unknown operation returns old.
func (a *AtomicRequest) Apply(old uint64) uint64 {
	switch a.Op {
	case FetchAdd:
		// Without the highest bit of each field no carry leaves a field; the
		// highest bits are then added without carry.
		return old&^a.Mask + a.Data&^a.Mask ^ (old^a.Data)&a.Mask
	case CmpSwap:
		if (old^a.Compare)&a.CompareMask == 0 {
			return old&^a.Mask | a.Data&a.Mask
		}
	}
	return old
}

// AtomicResponseSize is the size of an [AtomicResponse] in octets, as in figure 6 of
// RFC 7306. The prose of its section 4 says 32.
const AtomicResponseSize = 12

// AtomicResponse is the RDMAP header of an Atomic Response (RFC 7306 section
// 5.2.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                    Original Request Identifier                |
//	+---------------------------------------------------------------+
//	|                    Original Remote Data Value                 |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
type AtomicResponse struct {
	Original uint64 // the value before the operation
	ID       uint32 // the request's
}

// Append appends the response.
func (a *AtomicResponse) Append(dst []byte) []byte {
	var b [AtomicResponseSize]byte
	binary.BigEndian.PutUint32(b[0:], a.ID)
	binary.BigEndian.PutUint64(b[4:], a.Original)
	return append(dst, b[:]...)
}

// Parse takes the response that begins b, which follows the [Header]. The error is
// [ErrIncomplete].
func (a *AtomicResponse) Parse(b []byte) (n int, err error) {
	if len(b) < AtomicResponseSize {
		return 0, ErrIncomplete
	}
	a.ID = binary.BigEndian.Uint32(b[0:])
	a.Original = binary.BigEndian.Uint64(b[4:])
	return AtomicResponseSize, nil
}
