package model

import (
	"fmt"
	"slices"
)

// Code is a DAT return code without its class bits: type in the upper half,
// subtype in the lower. Expected codes with subtype 0 stand for any subtype.
type Code uint32

// Return types, from dat_error.h.
const (
	success               Code = 0
	connQualInUse         Code = 0x02 << 16
	insufficientResources Code = 0x03 << 16
	invalidHandle         Code = 0x05 << 16
	invalidParameter      Code = 0x06 << 16
	invalidState          Code = 0x07 << 16
	lengthError           Code = 0x08 << 16
	privilegesViolation   Code = 0x0B << 16
	protectionViolation   Code = 0x0C << 16
	queueEmpty            Code = 0x0D << 16
	queueFull             Code = 0x0E << 16
	timeoutExpired        Code = 0x0F << 16
	invalidAddress        Code = 0x12 << 16
	interruptedCall       Code = 0x13 << 16
	connQualUnavailable   Code = 0x14 << 16
)

// Subtypes.
const (
	subPZ         Code = 59
	subEVDRequest Code = 60
	subEVDConnect Code = 62
	subCNOInUse   Code = 67
	subUnwaitable Code = 73
	subEVDInUse   Code = 74
	subWaiter     Code = 78
	subLMRInUse   Code = 81
	subPZInUse    Code = 83
	subSRQInUse   Code = 87
)

var typeNames = map[Code]string{
	success: "SUCCESS", connQualInUse: "CONN_QUAL_IN_USE", insufficientResources: "INSUFFICIENT_RESOURCES",
	invalidHandle: "INVALID_HANDLE", invalidParameter: "INVALID_PARAMETER", invalidState: "INVALID_STATE",
	lengthError:         "LENGTH_ERROR",
	privilegesViolation: "PRIVILEGES_VIOLATION", protectionViolation: "PROTECTION_VIOLATION",
	queueEmpty: "QUEUE_EMPTY", queueFull: "QUEUE_FULL", timeoutExpired: "TIMEOUT_EXPIRED",
	invalidAddress: "INVALID_ADDRESS", interruptedCall: "INTERRUPTED_CALL", connQualUnavailable: "CONN_QUAL_UNAVAILABLE",
}

func (c Code) String() string {
	name := typeNames[c&^0xffff]
	if name == "" {
		name = fmt.Sprintf("type %#x", uint32(c>>16))
	}
	if sub := c & 0xffff; sub != 0 {
		name += fmt.Sprintf("/%d", uint32(sub))
	}
	return name
}

// CodeOf returns the code of a DAT_RETURN, without its class bits.
func CodeOf(ret uint32) Code { return Code(ret & 0x3fffffff) }

// isOneOf reports whether an expected code is c.
func (c Code) isOneOf(expected []Code) bool {
	return slices.Contains(expected, c) || slices.Contains(expected, c&^0xffff)
}
