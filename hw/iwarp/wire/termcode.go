package wire

import (
	"cmp"
	"fmt"
	"strings"
)

// TermCode says why a stream is terminated, in the form of the first two octets of a
// Terminate's control field (RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044
// section 8, RFC 6581 section 8):
//
//	 0                   1
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
//	+-------+-------+---------------+
//	| Layer | EType |  Error Code   |
//	+-------+-------+---------------+
type TermCode uint16

// Layer is the protocol layer that found an error.
type Layer uint8

// The layers.
const (
	LayerRDMAP Layer = 0
	LayerDDP   Layer = 1
	LayerLLP   Layer = 2 // MPA
)

// Error types. Each belongs to a layer; MPA has only one, 0.
const (
	TypeCatastrophic = 0 // RDMAP and DDP: local catastrophic error
	TypeProtection   = 1 // RDMAP: remote protection error
	TypeOperation    = 2 // RDMAP: remote operation error
	TypeTagged       = 1 // DDP: tagged buffer error
	TypeUntagged     = 2 // DDP: untagged buffer error
	TypeMPA          = 0 // LLP
)

// RDMAP's codes. A local catastrophic error may carry any code.
const (
	TermRDMAPLocal TermCode = 0x0000

	TermProtectionSTag        TermCode = 0x0100 // invalid STag
	TermProtectionBounds      TermCode = 0x0101 // base or bounds violation
	TermProtectionAccess      TermCode = 0x0102 // access rights violation
	TermProtectionStream      TermCode = 0x0103 // STag not associated with the stream
	TermProtectionWrap        TermCode = 0x0104 // tagged offset wraps
	TermProtectionInvalidate  TermCode = 0x0109 // STag can't be invalidated
	TermProtectionUnspecified TermCode = 0x01ff

	TermOperationVersion     TermCode = 0x0205 // invalid RDMAP version
	TermOperationOpcode      TermCode = 0x0206 // unexpected opcode
	TermOperationStream      TermCode = 0x0207 // catastrophic, this stream
	TermOperationGlobal      TermCode = 0x0208 // catastrophic, global
	TermOperationInvalidate  TermCode = 0x0209 // STag can't be invalidated
	TermOperationUnspecified TermCode = 0x02ff
)

// DDP's codes.
const (
	TermDDPLocal TermCode = 0x1000

	TermTaggedSTag    TermCode = 0x1100 // invalid STag
	TermTaggedBounds  TermCode = 0x1101 // base or bounds violation
	TermTaggedStream  TermCode = 0x1102 // STag not associated with the stream
	TermTaggedWrap    TermCode = 0x1103 // tagged offset wraps
	TermTaggedVersion TermCode = 0x1104 // invalid DDP version

	TermUntaggedQueue    TermCode = 0x1201 // invalid queue number
	TermUntaggedNoBuffer TermCode = 0x1202 // message number: no buffer available
	TermUntaggedMSN      TermCode = 0x1203 // message number out of range
	TermUntaggedMO       TermCode = 0x1204 // invalid message offset
	TermUntaggedTooLong  TermCode = 0x1205 // message too long for its buffer
	TermUntaggedVersion  TermCode = 0x1206 // invalid DDP version
)

// MPA's codes; the last three are RFC 6581's.
const (
	TermMPALost    TermCode = 0x2001 // TCP connection closed, terminated or lost
	TermMPACRC     TermCode = 0x2002 // CRC does not match
	TermMPAMarker  TermCode = 0x2003 // marker and ULPDU_Length disagree on an FPDU's start
	TermMPARequest TermCode = 0x2004 // invalid Request or Reply Frame
	TermMPALocal   TermCode = 0x2005 // local catastrophic error
	TermMPAIRD     TermCode = 0x2006 // insufficient IRD resources
	TermMPARTR     TermCode = 0x2007 // no matching RTR option
)

var termText = map[TermCode]string{
	TermRDMAPLocal: "RDMAP: local catastrophic error",

	TermProtectionSTag:        "RDMAP: remote protection: invalid STag",
	TermProtectionBounds:      "RDMAP: remote protection: base or bounds violation",
	TermProtectionAccess:      "RDMAP: remote protection: access rights violation",
	TermProtectionStream:      "RDMAP: remote protection: STag not associated with the stream",
	TermProtectionWrap:        "RDMAP: remote protection: tagged offset wraps",
	TermProtectionInvalidate:  "RDMAP: remote protection: STag can't be invalidated",
	TermProtectionUnspecified: "RDMAP: remote protection: unspecified",
	TermOperationVersion:      "RDMAP: remote operation: invalid version",
	TermOperationOpcode:       "RDMAP: remote operation: unexpected opcode",
	TermOperationStream:       "RDMAP: remote operation: catastrophic for the stream",
	TermOperationGlobal:       "RDMAP: remote operation: catastrophic, global",
	TermOperationInvalidate:   "RDMAP: remote operation: STag can't be invalidated",
	TermOperationUnspecified:  "RDMAP: remote operation: unspecified",

	TermDDPLocal:         "DDP: local catastrophic error",
	TermTaggedSTag:       "DDP: tagged buffer: invalid STag, or no RemoteWrite on its memory",
	TermTaggedBounds:     "DDP: tagged buffer: base or bounds violation",
	TermTaggedStream:     "DDP: tagged buffer: STag not associated with the stream",
	TermTaggedWrap:       "DDP: tagged buffer: tagged offset wraps",
	TermTaggedVersion:    "DDP: tagged buffer: invalid version",
	TermUntaggedQueue:    "DDP: untagged buffer: invalid queue number",
	TermUntaggedNoBuffer: "DDP: untagged buffer: no buffer available",
	TermUntaggedMSN:      "DDP: untagged buffer: message number out of range",
	TermUntaggedMO:       "DDP: untagged buffer: invalid message offset",
	TermUntaggedTooLong:  "DDP: untagged buffer: message too long",
	TermUntaggedVersion:  "DDP: untagged buffer: invalid version",

	TermMPALost:    "MPA: connection lost",
	TermMPACRC:     "MPA: CRC mismatch",
	TermMPAMarker:  "MPA: marker and length disagree",
	TermMPARequest: "MPA: invalid Request or Reply Frame",
	TermMPALocal:   "MPA: local catastrophic error",
	TermMPAIRD:     "MPA: insufficient IRD resources",
	TermMPARTR:     "MPA: no matching RTR option",
}

// Layer is the layer that found the error.
func (c TermCode) Layer() Layer { return Layer(c >> 12) }

// Type is the error type; what it means depends on the layer.
func (c TermCode) Type() uint8 { return uint8(c>>8) & 0x0f }

// Code is the error code; what it means depends on the layer and type.
func (c TermCode) Code() uint8 { return uint8(c) }

// possible reports whether the layer exists and has that error type.
func (c TermCode) possible() bool {
	switch c.Layer() {
	case LayerRDMAP, LayerDDP:
		return c.Type() <= TypeOperation
	case LayerLLP:
		return c.Type() == TypeMPA
	}
	return false
}

// Text is the meaning of the code in its RFC's words, without the layer.
func (c TermCode) Text() string {
	text := c.words()
	if _, after, found := strings.Cut(text, ": "); found {
		return after
	}
	return text
}

// words is the meaning of the code in words. RFC 5040 figure 9 accepts any code for RDMAP's local
// catastrophic error.
func (c TermCode) words() string {
	if c.Layer() == LayerRDMAP && c.Type() == TypeCatastrophic {
		c = TermRDMAPLocal
	}
	return cmp.Or(termText[c], "unknown")
}

// String is the meaning of the code in words, then layer/type/code in hexadecimal.
func (c TermCode) String() string {
	return fmt.Sprintf("%s (%x/%x/%02x)", c.words(), uint8(c.Layer()), c.Type(), c.Code())
}
