package mem

import (
	"encoding/binary"

	"godat/hw"
)

// Segment is a piece of a local region, in a list of what an operation sends
// from or receives into: DAT_LMR_TRIPLET. With Len 0 the other fields mean
// nothing. [LMR.Segment] makes one.
type Segment struct {
	Addr    uint64 // virtual address of the first byte
	Len     uint32 // bytes
	Context uint32 // LMR.Context
}

// RemoteSegment is a piece of a peer's region, the target of RDMA:
// DAT_RMR_TRIPLET. [LMR.Remote] makes one; its owner sends it to the peer, for
// which this package defines an encoding of [RemoteSegmentSize] bytes, all
// numbers big-endian:
//
//	 0               4               8              12              16
//	+---------------+---------------+---------------+---------------+
//	|             Addr              |      Len      |    Context    |
//	+---------------+---------------+---------------+---------------+
type RemoteSegment struct {
	Addr    uint64 // virtual address at the peer
	Len     uint32 // bytes
	Context uint32 // LMR.RemoteContext at the peer
}

// RemoteSegmentSize is how many bytes an encoded RemoteSegment has.
const RemoteSegmentSize = 16

// Slice is n bytes of the memory from offset off on. A range that is not within it
// gives memory that no peer has, as does a nil region's: the error appears where the
// range is used.
func (r RemoteSegment) Slice(off, n int) RemoteSegment {
	if off < 0 || n < 0 || uint64(off)+uint64(n) > uint64(r.Len) {
		return (*LMR)(nil).Remote(off, n)
	}
	return RemoteSegment{Addr: r.Addr + uint64(off), Len: uint32(n), Context: r.Context}
}

// AppendBinary appends the encoding to b. It implements
// [encoding.BinaryAppender]; the error is always nil.
func (r RemoteSegment) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, r.Addr)
	b = binary.BigEndian.AppendUint32(b, r.Len)
	return binary.BigEndian.AppendUint32(b, r.Context), nil
}

// MarshalBinary is AppendBinary to nothing. It implements
// [encoding.BinaryMarshaler]; the error is always nil.
func (r RemoteSegment) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, RemoteSegmentSize))
}

// UnmarshalBinary takes the encoding, which must be all of b; any other length
// is INVALID_PARAMETER, as is a nil r, and r stays as it was. It implements
// [encoding.BinaryUnmarshaler].
//
// Every 16 bytes are a RemoteSegment: whether it names memory that may be
// touched, the peer's device decides when it is used.
func (r *RemoteSegment) UnmarshalBinary(b []byte) error {
	if r == nil {
		return hw.Errorf("mem.RemoteSegment.UnmarshalBinary", hw.InvalidParameter, hw.NoSubtype, "there is no remote segment to decode into")
	}
	if len(b) != RemoteSegmentSize {
		return hw.Errorf("mem.RemoteSegment.UnmarshalBinary", hw.InvalidParameter, hw.Arg1,
			"%d bytes; a remote segment has %d", len(b), RemoteSegmentSize)
	}
	*r = decodeRemote(b)
	return nil
}

// ParseRemoteSegment takes the encoding from the first [RemoteSegmentSize] bytes
// of b; what follows is the caller's. A shorter b is INVALID_PARAMETER.
func ParseRemoteSegment(b []byte) (RemoteSegment, error) {
	if len(b) < RemoteSegmentSize {
		return RemoteSegment{}, hw.Errorf("mem.ParseRemoteSegment", hw.InvalidParameter, hw.Arg1,
			"%d bytes; a remote segment has %d", len(b), RemoteSegmentSize)
	}
	return decodeRemote(b), nil
}

func decodeRemote(b []byte) RemoteSegment {
	return RemoteSegment{
		Addr:    binary.BigEndian.Uint64(b),
		Len:     binary.BigEndian.Uint32(b[8:]),
		Context: binary.BigEndian.Uint32(b[12:]),
	}
}
