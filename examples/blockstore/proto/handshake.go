package proto

import (
	"encoding/binary"
	"fmt"

	dat "godat/runtime"
)

// HelloLen and WelcomeLen are the lengths of Hello and Welcome in bytes. Both fit into
// the 56 bytes of private data that the narrowest provider carries.
const (
	HelloLen   = 16
	WelcomeLen = 16 + dat.RemoteSegmentSize
)

// The bounds of the limits.
const (
	MinBlock = 512
	MaxBlock = 1 << 20
	MaxSlots = 1 << 10
)

// Hello is the private data of the client's request: the limits that it wants.
//
//	 0       2         3   4       6   8       12    16
//	┌───────┬─────────┬───┬───────┬───┬───────┬─────┐
//	│ magic │ version │ 0 │ slots │ 0 │ block │ 0   │
//	└───────┴─────────┴───┴───────┴───┴───────┴─────┘
type Hello struct{ Limits }

// Append appends the encoding to b.
func (h Hello) Append(b []byte) []byte { return appendLimits(b, 0, h.Limits) }

// ParseHello reads a Hello. A transport may pad private data with zeros.
func ParseHello(b []byte) (Hello, error) {
	if len(b) < HelloLen {
		return Hello{}, fmt.Errorf("%w: a hello of %d bytes", ErrMalformed, len(b))
	}
	status, l, err := parseLimits(b)
	if err == nil && status != OK {
		err = fmt.Errorf("%w: a hello with a status", ErrMalformed)
	}
	if err != nil {
		return Hello{}, err
	}
	return Hello{l}, nil
}

// Welcome is the server's answer. In an accept it has the limits that the server gives,
// never more than the client wants, and the window in the server's memory; in a reject,
// the reason.
//
//	 0       2         3        4       6   8       12    16           32
//	┌───────┬─────────┬────────┬───────┬───┬───────┬─────┬────────────┐
//	│ magic │ version │ status │ slots │ 0 │ block │ 0   │ window     │
//	└───────┴─────────┴────────┴───────┴───┴───────┴─────┴────────────┘
type Welcome struct {
	Limits
	Status Status            // OK in an accept
	Window dat.RemoteSegment // slot i begins at byte i*Block
}

// Append appends the encoding to b.
func (w Welcome) Append(b []byte) []byte {
	b, _ = w.Window.AppendBinary(appendLimits(b, w.Status, w.Limits)) // its error is always nil
	return b
}

// ParseWelcome reads a Welcome. A transport may pad private data with zeros.
func ParseWelcome(b []byte) (Welcome, error) {
	if len(b) < WelcomeLen {
		return Welcome{}, fmt.Errorf("%w: a welcome of %d bytes", ErrMalformed, len(b))
	}
	status, l, err := parseLimits(b)
	if err != nil {
		return Welcome{}, err
	}
	window, err := dat.ParseRemoteSegment(b[16:])
	if err != nil {
		return Welcome{}, err
	}
	if status == OK && int64(window.Len) != int64(l.Window()) {
		return Welcome{}, fmt.Errorf("%w: a window of %d bytes for %d slots of %d", ErrMalformed, window.Len, l.Slots, l.Block)
	}
	return Welcome{Limits: l, Status: status, Window: window}, nil
}

func appendLimits(b []byte, s Status, l Limits) []byte {
	b = binary.BigEndian.AppendUint16(b, magic)
	b = append(b, version, byte(s))
	b = binary.BigEndian.AppendUint16(b, uint16(l.Slots))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(l.Block))
	return append(b, 0, 0, 0, 0)
}

// parseLimits reads the 16 bytes with which both begin.
func parseLimits(b []byte) (Status, Limits, error) {
	if err := checkMagic(b); err != nil {
		return 0, Limits{}, err
	}
	s, l := Status(b[3]), Limits{
		Slots: int(binary.BigEndian.Uint16(b[4:])),
		Block: int(binary.BigEndian.Uint32(b[8:])),
	}
	switch {
	case int(s) >= len(statusText):
		return 0, Limits{}, fmt.Errorf("%w: unknown status %d", ErrMalformed, s)
	case binary.BigEndian.Uint16(b[6:]) != 0 || binary.BigEndian.Uint32(b[12:]) != 0:
		return 0, Limits{}, fmt.Errorf("%w: reserved bytes are set", ErrMalformed)
	}
	return s, l, l.Check()
}

// Check is an error if the limits exceed the bounds of the protocol.
func (l Limits) Check() error {
	if l.Slots < 1 || l.Slots > MaxSlots || l.Block < MinBlock || l.Block > MaxBlock {
		return fmt.Errorf("%w: %d slots of %d bytes; 1 to %d of %d to %d are possible",
			ErrMalformed, l.Slots, l.Block, MaxSlots, MinBlock, MaxBlock)
	}
	return nil
}
