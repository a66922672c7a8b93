package mem

import (
	"encoding/binary"
	"encoding/hex"

	"godat/hw"
)

// Segment is a part of a local region that an operation sends from or receives
// into: DAT_LMR_TRIPLET. If Len is 0 the other fields have no meaning.
// [LMR.Segment] makes one.
type Segment struct {
	Addr    uint64 // virtual address of the first byte
	Len     uint32 // bytes
	Context uint32 // LMR.Context
}

// RemoteSegment is a part of a peer's region, the target of RDMA: DAT_RMR_TRIPLET.
// [LMR.Remote] makes one; the program that owns the region sends it to the peer.
// For that this package defines an encoding of [RemoteSegmentSize] bytes, all
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

// RemoteSegmentSize is the length in bytes of an encoded RemoteSegment.
const RemoteSegmentSize = 16

// Slice returns n bytes of the memory from offset off on. For a range that is not
// within the memory it returns a segment that no peer has, as [LMR.Remote] does for
// a nil region, so that the post that uses it returns the error.
func (r RemoteSegment) Slice(off, n int) RemoteSegment {
	if off < 0 || n < 0 || uint64(off)+uint64(n) > uint64(r.Len) {
		return (*LMR)(nil).Remote(off, n)
	}
	return RemoteSegment{Addr: r.Addr + uint64(off), Len: uint32(n), Context: r.Context}
}

// AppendBinary appends the encoding to b and returns the result. It implements
// [encoding.BinaryAppender]; the error is always nil.
func (r RemoteSegment) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint64(b, r.Addr)
	b = binary.BigEndian.AppendUint32(b, r.Len)
	return binary.BigEndian.AppendUint32(b, r.Context), nil
}

// MarshalBinary returns the encoding in a new slice. It implements
// [encoding.BinaryMarshaler]; the error is always nil.
func (r RemoteSegment) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, RemoteSegmentSize))
}

// UnmarshalBinary decodes b, which must be exactly one encoding. Another length is
// INVALID_PARAMETER, as is a nil r; r then stays as it was. It implements
// [encoding.BinaryUnmarshaler].
//
// Any 16 bytes decode to a RemoteSegment: the peer's device decides, when it is
// used, whether it names memory that may be accessed.
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

// MarshalText returns the encoding as 32 hexadecimal digits, for headers and command lines. It
// implements [encoding.TextMarshaler]; the error is always nil.
func (r RemoteSegment) MarshalText() ([]byte, error) {
	b, _ := r.MarshalBinary()
	return hex.AppendEncode(nil, b), nil
}

// UnmarshalText decodes what MarshalText returns, in letters of either size. Any other text is
// INVALID_PARAMETER, as is a nil r; r then stays as it was. It implements
// [encoding.TextUnmarshaler].
func (r *RemoteSegment) UnmarshalText(text []byte) error {
	const op = "mem.RemoteSegment.UnmarshalText"
	if len(text) != 2*RemoteSegmentSize {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%d bytes; the text of a remote segment has %d", len(text), 2*RemoteSegmentSize)
	}
	b, err := hex.DecodeString(string(text))
	if err != nil {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "%w", err)
	}
	return r.UnmarshalBinary(b)
}

// ParseRemoteSegment decodes the first [RemoteSegmentSize] bytes of b and ignores
// the rest. A shorter b is INVALID_PARAMETER.
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
