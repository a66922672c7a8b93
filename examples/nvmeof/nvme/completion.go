package nvme

import (
	"encoding/binary"
	"fmt"
)

// CompletionLen is the length of a completion (a completion queue entry) in bytes.
const CompletionLen = 16

// Completion answers a command. It has few enough fields for the compiler to keep it in
// registers: one that is stored field by field and loaded as a whole makes the processor
// wait for each of its stores.
type Completion struct {
	Result uint64 // what the command returns, by opcode
	SQ     SQ
	CID    uint16 // of the command
	Status Status
}

// SQ is the submission queue of a command that was completed, and how far the target is
// in it.
type SQ struct{ Head, ID uint16 }

// ParseCompletion decodes a response capsule.
func ParseCompletion(b []byte) (Completion, error) {
	if len(b) != CompletionLen {
		return Completion{}, fmt.Errorf("nvme: a completion of %d bytes", len(b))
	}
	low, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return Completion{
		Result: low, SQ: SQ{Head: uint16(high), ID: uint16(high >> 16)}, CID: uint16(high >> 32), Status: Status(high >> 49),
	}, nil
}

// Put encodes the completion into the first CompletionLen bytes of b. The phase bit,
// which fabrics don't use, is zero.
func (c Completion) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:CompletionLen]
	le.PutUint64(b, c.Result)
	le.PutUint64(b[8:], uint64(c.SQ.Head)|uint64(c.SQ.ID)<<16|uint64(c.CID)<<32|uint64(c.Status)<<49)
}
