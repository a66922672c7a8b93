package nvme

import (
	"encoding/binary"
	"fmt"
)

// CompletionLen is the length of a completion (a completion queue entry) in bytes.
const CompletionLen = 16

// Completion answers a command.
type Completion struct {
	Result uint64 // what the command returns, by opcode
	SQHead uint16 // how far the target is in its submission queue
	SQID   uint16
	CID    uint16 // of the command
	Status Status
}

// ParseCompletion decodes a response capsule.
func ParseCompletion(b []byte) (Completion, error) {
	if len(b) != CompletionLen {
		return Completion{}, fmt.Errorf("nvme: a completion of %d bytes", len(b))
	}
	low, high := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return Completion{
		Result: low, SQHead: uint16(high), SQID: uint16(high >> 16), CID: uint16(high >> 32), Status: Status(high >> 49),
	}, nil
}

// Put encodes the completion into the first CompletionLen bytes of b. The phase bit,
// which fabrics don't use, is zero.
func (c *Completion) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:CompletionLen]
	le.PutUint64(b, c.Result)
	le.PutUint64(b[8:], uint64(c.SQHead)|uint64(c.SQID)<<16|uint64(c.CID)<<32|uint64(c.Status)<<49)
}
