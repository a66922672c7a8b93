// Package proto is what clients and server of the block store say to each other, by the calls
// of godat/runtime/rpc. A block goes by RDMA between the client's memory and the server's: the
// server reads and writes the client's memory, and no client reaches the server's.
package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The methods. The payload of Put, Get and SetRoot is a block's ID. Numbers are big endian.
const (
	Open    uint16 = 1 + iota // the answer is the server's Limits
	Put                       // the source is the block; the answer comes when it is on disk
	Get                       // the sink takes the block; the answer is its length, 4 bytes
	SetRoot                   // makes the block the root
	Root                      // the answer is the root's ID
)

// Methods are their names on the page and in metrics.
var Methods = map[uint16]string{Open: "open", Put: "put", Get: "get", SetRoot: "set root", Root: "root"}

// Message is the most bytes of a payload.
const Message = 256

// Limits are the most that a client may have under way, as the client wants it or the server
// allows it.
type Limits struct {
	Slots int // blocks
	Block int // the longest block in bytes
}

// The bounds of the limits.
const (
	MinBlock = 512
	MaxBlock = 1 << 20
	MaxSlots = 1 << 10
)

// LimitsLen is the length of encoded Limits in bytes.
const LimitsLen = 8

// ErrLimits is wrapped by the errors of limits.
var ErrLimits = errors.New("the limits are out of bounds")

// Check is an error if the limits exceed the bounds.
func (l Limits) Check() error {
	if l.Slots < 1 || l.Slots > MaxSlots || l.Block < MinBlock || l.Block > MaxBlock {
		return fmt.Errorf("%w: %d slots of %d bytes; 1 to %d of %d to %d are possible",
			ErrLimits, l.Slots, l.Block, MaxSlots, MinBlock, MaxBlock)
	}
	return nil
}

// Encode is 4 bytes of Slots and 4 of Block.
func (l Limits) Encode() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(l.Slots)), uint32(l.Block))
}

// ParseLimits reads LimitsLen bytes.
func ParseLimits(b []byte) (Limits, error) {
	l := Limits{int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))}
	return l, l.Check()
}
