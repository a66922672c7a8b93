package wire

// MPAReply is the frame with which a responder answers an [MPARequest] (RFC 5044
// section 7.1.1, RFC 6581 section 6):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	~            Key: "MPA ID Rep Frame" (16 octets)                ~
//	+-+-+-+-+-------+---------------+-------------------------------+
//	|M|C|R|S|  Res  |      Rev      |           PD_Length           |
//	+-+-+-+-+-------+---------------+-------------------------------+
//	~       Private Data, which with S begins with EnhancedData     ~
//	+---------------------------------------------------------------+
//
// A reply has the request's Revision and Enhanced, even a reject.
type MPAReply struct {
	Revision uint8 // [MPARevision1] or [MPARevision2]
	// Markers is M: the responder wants markers in what it receives.
	Markers bool
	// CRC is C: the responder wants CRCs, which then go both ways. siw as an initiator
	// goes by this C bit alone, and not by the request's.
	CRC bool
	// Reject is R: the responder does not want the connection.
	Reject bool
	// BigFPDU echoes the request's BigFPDU.
	BigFPDU bool
	// Enhanced is S: the frame has Data. Revision 1 has neither.
	Enhanced bool
	Data     EnhancedData
	// Private is the consumer's private data, as in MPARequest.
	Private []byte
}

// Append appends the frame. It panics if Private is longer than its limit.
func (r *MPAReply) Append(dst []byte) []byte {
	f := mpaFrame{
		flags: flag(r.Markers, flagMarkers) | flag(r.CRC, flagCRC) |
			flag(r.Reject, flagReject) | flag(r.BigFPDU, flagBigFPDU),
		revision: r.Revision, enhanced: r.Enhanced, data: r.Data, private: r.Private,
	}
	return f.append(dst, replyKey)
}

// ParseMPAReply takes the reply that begins b. The errors are those of
// [ParseMPARequest]. The caller checks that the reply fits the request ([ErrMPAMode]).
func ParseMPAReply(b []byte) (r MPAReply, n int, err error) {
	var f mpaFrame
	if n, err = f.parse(b, replyKey, requestKey); err != nil {
		return r, 0, err
	}
	return MPAReply{
		Revision: f.revision,
		Markers:  f.flags&flagMarkers != 0,
		CRC:      f.flags&flagCRC != 0,
		Reject:   f.flags&flagReject != 0,
		BigFPDU:  f.flags&flagBigFPDU != 0,
		Enhanced: f.enhanced,
		Data:     f.data,
		Private:  f.private,
	}, n, nil
}
