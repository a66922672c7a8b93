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
	le := binary.LittleEndian
	return Completion{
		Result: le.Uint64(b), SQHead: le.Uint16(b[8:]), SQID: le.Uint16(b[10:]), CID: le.Uint16(b[12:]),
		Status: Status(le.Uint16(b[14:]) >> 1),
	}, nil
}

// Put encodes the completion into the first CompletionLen bytes of b. The phase bit,
// which fabrics don't use, is zero.
func (c *Completion) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:CompletionLen]
	le.PutUint64(b, c.Result)
	le.PutUint16(b[8:], c.SQHead)
	le.PutUint16(b[10:], c.SQID)
	le.PutUint16(b[12:], c.CID)
	le.PutUint16(b[14:], uint16(c.Status)<<1)
}
