package wire

import "errors"

// ErrIncomplete says that the octets at hand are the beginning of something that may be
// right: the caller parses again with more. It is not the peer's fault and hence no
// [*Error].
var ErrIncomplete = errors.New("iwarp: incomplete")

// Error is an error in what a peer sent, with the Terminate that it calls for. There is
// one value per cause, below. A caller compares with errors.Is, or takes the Terminate
// from the error with errors.As:
//
//	var we *wire.Error
//	if errors.As(err, &we) && !we.Close {
//		t := wire.NewTerminate(we.Term, ulpdu, length)
type Error struct {
	// Term is the layer, type and code of the Terminate.
	Term TermCode
	// Close says that no Terminate may answer the error, because the stream is not in
	// full operation, is lost, or is itself terminated: the caller closes the
	// connection. Term is then for the log.
	Close bool

	text string
}

// Error implements error.
func (e *Error) Error() string { return "iwarp: " + e.text }

// Errors of an MPA start-up. For the first group RFC 5044 section 8 has the connection
// closed at once; for the second, which the caller's negotiation finds, RFC 6581 section
// 8 has Terminates.
var (
	ErrMPAKey          = &Error{Term: TermMPARequest, Close: true, text: "not an MPA Request or Reply Frame: the peer speaks another protocol than iWARP, so look at the port"}
	ErrMPARole         = &Error{Term: TermMPARequest, Close: true, text: "the MPA peer plays the same role"}
	ErrMPARevision     = &Error{Term: TermMPARequest, Close: true, text: "unsupported MPA revision"}
	ErrMPAPrivateLong  = &Error{Term: TermMPARequest, Close: true, text: "MPA private data longer than 512 octets"}
	ErrMPAPrivateShort = &Error{Term: TermMPARequest, Close: true, text: "MPA private data too short for its enhanced block"}
	// ErrMPAMode: the reply's S or A bit, or its revision, does not match the request's.
	ErrMPAMode = &Error{Term: TermMPARequest, Close: true, text: "MPA Reply Frame does not match the request"}

	ErrMPALocal = &Error{Term: TermMPALocal, text: "local error in MPA start-up"}
	ErrMPAIRD   = &Error{Term: TermMPAIRD, text: "insufficient IRD resources"}
	ErrMPARTR   = &Error{Term: TermMPARTR, text: "no matching RTR option"}
)

// Errors of an FPDU.
var (
	ErrLost   = &Error{Term: TermMPALost, Close: true, text: "connection lost"}
	ErrCRC    = &Error{Term: TermMPACRC, text: "FPDU: CRC mismatch"}
	ErrMarker = &Error{Term: TermMPAMarker, text: "FPDU: marker and length disagree"}
	// ErrULPDUShort: ULPDU_Length is less than the size of the message's headers.
	ErrULPDUShort = &Error{Term: TermMPAMarker, text: "FPDU: ULPDU too short for its headers"}
	// ErrULPDULong: ULPDU_Length is over [MaxULPDU] on a stream with markers, where a
	// marker's pointer could not reach back to the FPDU's start.
	ErrULPDULong = &Error{Term: TermMPAMarker, text: "FPDU: ULPDU longer than 64768 octets"}
)

// Errors of a DDP segment. The codec finds wrong versions, wraps, queue numbers, and
// messages that must be one segment and are not. The caller finds the rest, because it
// has the buffers and the message numbers.
var (
	ErrDDPLocal = &Error{Term: TermDDPLocal, text: "DDP: local catastrophic error"}

	// DDP has no code for a missing access right, so ErrTaggedAccess has ErrTaggedSTag's.
	ErrTaggedSTag    = &Error{Term: TermTaggedSTag, text: "tagged segment: invalid STag"}
	ErrTaggedAccess  = &Error{Term: TermTaggedSTag, text: "tagged segment: no RemoteWrite on the memory of the STag"}
	ErrTaggedBounds  = &Error{Term: TermTaggedBounds, text: "tagged segment: out of bounds"}
	ErrTaggedStream  = &Error{Term: TermTaggedStream, text: "tagged segment: STag not associated with the stream"}
	ErrTaggedWrap    = &Error{Term: TermTaggedWrap, text: "tagged segment: offset wraps"}
	ErrTaggedVersion = &Error{Term: TermTaggedVersion, text: "tagged segment: invalid DDP version"}

	ErrQueue           = &Error{Term: TermUntaggedQueue, text: "untagged segment: invalid queue number"}
	ErrNoBuffer        = &Error{Term: TermUntaggedNoBuffer, text: "untagged segment: no buffer available"}
	ErrMSN             = &Error{Term: TermUntaggedMSN, text: "untagged segment: message number out of sequence"}
	ErrMO              = &Error{Term: TermUntaggedMO, text: "untagged segment: invalid message offset"}
	ErrTooLong         = &Error{Term: TermUntaggedTooLong, text: "untagged segment: message too long"}
	ErrUntaggedVersion = &Error{Term: TermUntaggedVersion, text: "untagged segment: invalid DDP version"}
)

// Errors of an RDMAP message: protection errors of Read Requests, Atomic Requests and
// invalidations, and operation errors.
var (
	ErrRDMAPLocal = &Error{Term: TermRDMAPLocal, text: "RDMAP: local catastrophic error"}

	ErrSTag       = &Error{Term: TermProtectionSTag, text: "remote protection: invalid STag"}
	ErrBounds     = &Error{Term: TermProtectionBounds, text: "remote protection: out of bounds"}
	ErrAccess     = &Error{Term: TermProtectionAccess, text: "remote protection: access rights"}
	ErrStream     = &Error{Term: TermProtectionStream, text: "remote protection: STag not associated with the stream"}
	ErrWrap       = &Error{Term: TermProtectionWrap, text: "remote protection: offset wraps"}
	ErrInvalidate = &Error{Term: TermProtectionInvalidate, text: "remote protection: STag can't be invalidated"}
	ErrProtection = &Error{Term: TermProtectionUnspecified, text: "remote protection: unspecified"}

	ErrRDMAPVersion = &Error{Term: TermOperationVersion, text: "invalid RDMAP version"}
	// ErrOpcode: the opcode is unknown, or an extension that was not agreed on.
	ErrOpcode = &Error{Term: TermOperationOpcode, text: "unexpected RDMAP opcode"}
	// ErrOpcodeModel: a tagged message's opcode in an untagged segment, or the reverse.
	ErrOpcodeModel = &Error{Term: TermOperationOpcode, text: "RDMAP opcode in a segment of the wrong buffer model"}
	// ErrOpcodeQueue: the queue exists, but the opcode is another queue's.
	ErrOpcodeQueue = &Error{Term: TermOperationOpcode, text: "RDMAP opcode on the wrong queue"}
	ErrAtomicOp    = &Error{Term: TermOperationOpcode, text: "unknown atomic operation"}
	// ErrCatastrophic: the stream can't go on.
	ErrCatastrophic = &Error{Term: TermOperationStream, text: "remote operation: catastrophic for the stream"}
	// ErrReadLimit: more Read Requests and atomics outstanding than agreed.
	ErrReadLimit = &Error{Term: TermOperationStream, text: "remote operation: more reads outstanding than IRD"}
	// ErrMisaligned: an atomic's target is not aligned to 8 octets.
	ErrMisaligned          = &Error{Term: TermOperationStream, text: "remote operation: misaligned atomic"}
	ErrGlobal              = &Error{Term: TermOperationGlobal, text: "remote operation: catastrophic, global"}
	ErrInvalidateOperation = &Error{Term: TermOperationInvalidate, text: "remote operation: STag can't be invalidated"}
	ErrOperation           = &Error{Term: TermOperationUnspecified, text: "remote operation: unspecified"}

	// ErrTerminate: a Terminate that ends early. No Terminate answers a Terminate.
	ErrTerminate = &Error{Term: TermOperationUnspecified, Close: true, text: "malformed Terminate"}
)
