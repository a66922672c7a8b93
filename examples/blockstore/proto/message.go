package proto

import (
	"encoding/binary"
	"errors"
	"fmt"

	"godat/examples/blockstore/block"
)

// MessageLen is the length of every control message in bytes.
const MessageLen = 64

const (
	magic   = 0xb10c
	version = 1
	// replyBit in the operation's byte marks a reply.
	replyBit = 0x80
)

// Op is what a request asks for.
type Op uint8

// The operations.
const (
	OpPut     Op = 1 // store the block in the slot
	OpGet     Op = 2 // copy the block into the slot
	OpSetRoot Op = 3 // make ID the root
	OpRoot    Op = 4 // return the root's ID
)

func (o Op) String() string {
	switch o {
	case OpPut:
		return "PUT"
	case OpGet:
		return "GET"
	case OpSetRoot:
		return "SETROOT"
	case OpRoot:
		return "ROOT"
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Status is how a request ended, or why a connection was refused.
type Status uint8

// The statuses.
const (
	OK       Status = 0
	NotFound Status = 1 // the store has no such block, or no root
	Damaged  Status = 2 // the block arrived with another checksum or ID
	Failed   Status = 3 // the store could not read or write
	Full     Status = 4 // no more connections
	Mismatch Status = 5 // the Hello asks for what the server does not do
)

var statusText = [...]string{"ok", "not found", "damaged on the way", "the store failed", "the server is full", "not supported by the server"}

func (s Status) String() string {
	if int(s) < len(statusText) {
		return statusText[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// Err is nil for OK, and else the status as an error.
func (s Status) Err() error {
	if s == OK {
		return nil
	}
	return StatusError(s)
}

// StatusError is a status other than OK.
type StatusError Status

func (e StatusError) Error() string { return Status(e).String() }

// ErrMalformed is wrapped by every error of the parsers.
var ErrMalformed = errors.New("malformed message")

// Message is a request or a reply.
//
//	 0        2         3          4        5     6      8        12    16    24     32
//	┌────────┬─────────┬──────────┬────────┬─────┬──────┬────────┬─────┬─────┬──────┬──────────┐
//	│ magic  │ version │ op|reply │ status │ 0   │ slot │ length │ crc │ tag │ 0    │ id (32)  │
//	└────────┴─────────┴──────────┴────────┴─────┴──────┴────────┴─────┴─────┴──────┴──────────┘
type Message struct {
	Op     Op
	Reply  bool
	Status Status // of a reply; OK in a request
	Slot   uint16 // the block's slot in the window
	Length uint32 // length of the block in bytes; 0 if the message has no block
	CRC    uint32 // of the block
	Tag    uint64 // the reply has the tag of its request
	ID     block.ID
}

// Put writes the message to the first MessageLen bytes of b.
func (m *Message) Put(b []byte) {
	b = b[:MessageLen]
	clear(b)
	binary.BigEndian.PutUint16(b[0:], magic)
	b[2] = version
	b[3] = byte(m.Op)
	if m.Reply {
		b[3] |= replyBit
	}
	b[4] = byte(m.Status)
	binary.BigEndian.PutUint16(b[6:], m.Slot)
	binary.BigEndian.PutUint32(b[8:], m.Length)
	binary.BigEndian.PutUint32(b[12:], m.CRC)
	binary.BigEndian.PutUint64(b[16:], m.Tag)
	copy(b[32:], m.ID[:])
}

// Limits are the limits that the two sides of a connection agreed on.
type Limits struct {
	Slots int // of the window
	Block int // the longest block, and the size of a slot, in bytes
}

// Window is the size of the whole window in bytes.
func (l Limits) Window() int { return l.Slots * l.Block }

// ParseRequest reads a request; b is a whole message.
func ParseRequest(b []byte, l Limits) (Message, error) {
	m, err := parse(b, l)
	switch {
	case err != nil:
		return Message{}, err
	case m.Reply:
		return Message{}, fmt.Errorf("%w: a reply where a request belongs", ErrMalformed)
	case m.Status != OK:
		return Message{}, fmt.Errorf("%w: a request with a status", ErrMalformed)
	case (m.Op == OpPut) != (m.Length > 0):
		return Message{}, fmt.Errorf("%w: %v with length %d", ErrMalformed, m.Op, m.Length)
	}
	return m, nil
}

// ParseReply reads a reply; b is a whole message.
func ParseReply(b []byte, l Limits) (Message, error) {
	m, err := parse(b, l)
	switch {
	case err != nil:
		return Message{}, err
	case !m.Reply:
		return Message{}, fmt.Errorf("%w: a request where a reply belongs", ErrMalformed)
	case (m.Op == OpGet && m.Status == OK) != (m.Length > 0):
		return Message{}, fmt.Errorf("%w: reply to %v, %v, with length %d", ErrMalformed, m.Op, m.Status, m.Length)
	}
	return m, nil
}

// parse checks what is the same in requests and replies.
func parse(b []byte, l Limits) (Message, error) {
	if len(b) != MessageLen {
		return Message{}, fmt.Errorf("%w: %d bytes instead of %d", ErrMalformed, len(b), MessageLen)
	}
	if err := checkMagic(b); err != nil {
		return Message{}, err
	}
	if b[5] != 0 || binary.BigEndian.Uint64(b[24:]) != 0 {
		return Message{}, fmt.Errorf("%w: reserved bytes are set", ErrMalformed)
	}
	m := Message{
		Op:     Op(b[3] &^ replyBit),
		Reply:  b[3]&replyBit != 0,
		Status: Status(b[4]),
		Slot:   binary.BigEndian.Uint16(b[6:]),
		Length: binary.BigEndian.Uint32(b[8:]),
		CRC:    binary.BigEndian.Uint32(b[12:]),
		Tag:    binary.BigEndian.Uint64(b[16:]),
		ID:     block.ID(b[32:]),
	}
	switch {
	case m.Op < OpPut || m.Op > OpRoot:
		return Message{}, fmt.Errorf("%w: unknown operation %d", ErrMalformed, m.Op)
	case int(m.Status) >= len(statusText):
		return Message{}, fmt.Errorf("%w: unknown status %d", ErrMalformed, m.Status)
	case int(m.Slot) >= l.Slots:
		return Message{}, fmt.Errorf("%w: slot %d of %d", ErrMalformed, m.Slot, l.Slots)
	case int64(m.Length) > int64(l.Block):
		return Message{}, fmt.Errorf("%w: a block of %d bytes, at most %d", ErrMalformed, m.Length, l.Block)
	}
	return m, nil
}

// checkMagic checks the first three bytes, which are the same in all messages.
func checkMagic(b []byte) error {
	if got := binary.BigEndian.Uint16(b); got != magic {
		return fmt.Errorf("%w: starts with %#04x", ErrMalformed, got)
	}
	if b[2] != version {
		return fmt.Errorf("%w: version %d, not %d", ErrMalformed, b[2], version)
	}
	return nil
}
