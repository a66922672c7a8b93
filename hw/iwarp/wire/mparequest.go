package wire

// MPARequest is the frame with which an initiator opens a stream (RFC 5044
// section 7.1.1, RFC 6581 section 6):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	~            Key: "MPA ID Req Frame" (16 octets)                ~
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|0|S|  Res  |      Rev      |           PD_Length           |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	~       Private Data, which with S begins with EnhancedData     ~
//	+---------------------------------------------------------------+
type MPARequest struct {
	Revision uint8 // [MPARevision1] or [MPARevision2]
	// Markers is M: the initiator wants markers in what it receives.
	Markers bool
	// CRC is C: the initiator wants CRCs, which then go both ways.
	CRC bool
	// BigFPDU is a reserved bit, 0x08, with which this library, and siw if built so,
	// say that they take FPDUs longer than a TCP segment. A peer that knows the bit
	// echoes it.
	BigFPDU bool
	// Enhanced is S: the frame has Data. Revision 1 has neither.
	Enhanced bool
	Data     EnhancedData
	// Private is the consumer's private data, [MaxPrivate] octets at most, or
	// [MaxPrivateEnhanced] with Enhanced. In a parsed request it aliases the input.
	Private []byte
}

// Append appends the frame. It panics if Private is longer than its limit.
func (r *MPARequest) Append(dst []byte) []byte {
	f := mpaFrame{
		flags:    flag(r.Markers, flagMarkers) | flag(r.CRC, flagCRC) | flag(r.BigFPDU, flagBigFPDU),
		revision: r.Revision, enhanced: r.Enhanced, data: r.Data, private: r.Private,
	}
	return f.append(dst, requestKey)
}

// ParseMPARequest takes the request that begins b. The error is [ErrIncomplete] (see
// [MPAFrameSize]), or one of the ErrMPA values as soon as the octets at hand show it.
func ParseMPARequest(b []byte) (r MPARequest, n int, err error) {
	var f mpaFrame
	if n, err = f.parse(b, requestKey, replyKey); err != nil {
		return r, 0, err
	}
	return MPARequest{
		Revision: f.revision,
		Markers:  f.flags&flagMarkers != 0,
		CRC:      f.flags&flagCRC != 0,
		BigFPDU:  f.flags&flagBigFPDU != 0,
		Enhanced: f.enhanced,
		Data:     f.data,
		Private:  f.private,
	}, n, nil
}
