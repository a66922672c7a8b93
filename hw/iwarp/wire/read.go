package wire

import "encoding/binary"

// ReadRequestSize is the size of a [ReadRequest] in octets.
const ReadRequestSize = 28

// ReadRequest is the RDMAP header of an RDMA Read Request (RFC 5040 section 4.4):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                     Data Sink STag (SinkSTag)                 |
//	+---------------------------------------------------------------+
//	|                  Data Sink Tagged Offset (SinkTO)             |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                  RDMA Read Message Size (RDMARDSZ)            |
//	+---------------------------------------------------------------+
//	|                     Data Source STag (SrcSTag)                |
//	+---------------------------------------------------------------+
//	|                 Data Source Tagged Offset (SrcTO)             |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
type ReadRequest struct {
	SinkTO   uint64
	SrcTO    uint64
	SinkSTag uint32 // the responder copies SinkSTag and SinkTO into its response, uninterpreted
	SrcSTag  uint32
	Size     uint32 // octets to read
}

// Append appends the request.
func (r *ReadRequest) Append(dst []byte) []byte {
	var b [ReadRequestSize]byte
	binary.BigEndian.PutUint32(b[0:], r.SinkSTag)
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], r.SrcSTag)
	binary.BigEndian.PutUint64(b[20:], r.SrcTO)
	return append(dst, b[:]...)
}

// Parse takes the request that begins b, which follows the [Header]. The error is
// [ErrIncomplete], or [ErrWrap] when the source would wrap (RFC 5040 section 7.2), with
// which Parse sets the fields all the same.
func (r *ReadRequest) Parse(b []byte) (n int, err error) {
	if len(b) < ReadRequestSize {
		return 0, ErrIncomplete
	}
	r.SinkSTag = binary.BigEndian.Uint32(b[0:])
	r.SinkTO = binary.BigEndian.Uint64(b[4:])
	r.Size = binary.BigEndian.Uint32(b[12:])
	r.SrcSTag = binary.BigEndian.Uint32(b[16:])
	r.SrcTO = binary.BigEndian.Uint64(b[20:])
	if size := uint64(r.Size); size > 0 && r.SrcTO+size < r.SrcTO {
		return 0, ErrWrap
	}
	return ReadRequestSize, nil
}
