package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	dat "godat/runtime"
)

// The wire format is drawn in the package documentation.
const (
	magic      = "DATS"
	version    = 1
	helloSize  = 32
	headerSize = 32

	leastReceives = 8
	mostReceives  = 1 << 16

	flagFIN = 1
)

// ErrProtocol is matched by the error of a connection whose peer did not keep to the
// wire format.
var ErrProtocol = errors.New("stream: the peer broke the protocol")

// hello is what each end says of itself when the connection is made.
type hello struct {
	ring     dat.RemoteSegment
	receives uint32
}

// append appends the hello's encoding to b.
func (h hello) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = append(b, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, h.ring.Addr)
	b = binary.LittleEndian.AppendUint32(b, h.ring.Context)
	b = binary.LittleEndian.AppendUint32(b, h.ring.Len)
	b = binary.LittleEndian.AppendUint32(b, h.receives)
	return append(b, 0, 0, 0, 0)
}

// parseHello takes a hello from private data, which a device may have padded.
func parseHello(b []byte) (h hello, err error) {
	if err := checkGreeting(b); err != nil {
		return h, err
	}
	h.ring.Addr = binary.LittleEndian.Uint64(b[8:])
	h.ring.Context = binary.LittleEndian.Uint32(b[16:])
	h.ring.Len = binary.LittleEndian.Uint32(b[20:])
	h.receives = binary.LittleEndian.Uint32(b[24:])
	switch n := h.ring.Len; {
	case n < leastRing || n > mostRing || n&(n-1) != 0:
		return hello{}, fmt.Errorf("%w: its ring has %d bytes", ErrProtocol, n)
	case h.ring.Addr+uint64(n) < h.ring.Addr:
		return hello{}, fmt.Errorf("%w: its ring has no end", ErrProtocol)
	case h.receives < leastReceives || h.receives > mostReceives:
		return hello{}, fmt.Errorf("%w: it posts %d receives", ErrProtocol, h.receives)
	}
	return h, nil
}

// checkGreeting checks the part of a hello that all versions have.
func checkGreeting(b []byte) error {
	if len(b) < helloSize || string(b[:4]) != magic {
		return fmt.Errorf("%w: it speaks another protocol than package stream", ErrProtocol)
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != version {
		return fmt.Errorf("%w: it speaks version %d, and this end version %d", ErrProtocol, v, version)
	}
	return nil
}

// message is the header of a message.
type message struct {
	produced, consumed, granted uint64
	inline                      int
	fin                         bool
}

// put encodes the header into the first headerSize bytes of b.
func (m *message) put(b []byte) {
	b = b[:headerSize]
	binary.LittleEndian.PutUint64(b, m.produced)
	binary.LittleEndian.PutUint64(b[8:], m.consumed)
	binary.LittleEndian.PutUint64(b[16:], m.granted)
	last := uint64(m.inline) | version<<56
	if m.fin {
		last |= flagFIN << 16
	}
	binary.LittleEndian.PutUint64(b[24:], last)
}

// parseMessage takes a header from a slot. ok is false for one that this version does not
// know. Before a receive is posted, byte 31 of its slot is zero, so a message that is
// shorter than a header is not taken for the one before it.
func parseMessage(b []byte) (m message, ok bool) {
	b = b[:slotSize]
	m.produced = binary.LittleEndian.Uint64(b)
	m.consumed = binary.LittleEndian.Uint64(b[8:])
	m.granted = binary.LittleEndian.Uint64(b[16:])
	last := binary.LittleEndian.Uint64(b[24:])
	m.inline = int(last & 0xffff)
	m.fin = last&(flagFIN<<16) != 0
	return m, last&^(0xffff|flagFIN<<16) == version<<56 && m.inline <= maxInline
}
