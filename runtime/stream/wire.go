package stream

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"godat/mem"
)

// The wire format is drawn in the package documentation.
const (
	magic = "DATS"
	// oldest and newest are the versions of the wire format that an end speaks: the one of the
	// release before, and this one.
	oldest, newest = 3, 3

	helloSize  = 32
	headerSize = 32

	leastReceives = 8
	mostReceives  = 1 << 16

	flagFIN    = 1
	flagRing   = 2
	flagMoved  = 4
	flagOffer  = 8
	flagDirect = 16
	allFlags   = flagFIN | flagRing | flagMoved | flagOffer | flagDirect
)

// ErrProtocol is matched by the error of a connection whose peer did not keep to the
// wire format.
var ErrProtocol = errors.New("stream: the peer broke the protocol")

// hello is what each end says of itself when the connection is made.
type hello struct {
	ring     mem.RemoteSegment
	receives uint32
	version  uint8 // of a peer's: what both ends speak
}

func (h hello) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, oldest)
	b = binary.LittleEndian.AppendUint16(b, newest)
	b = appendRing(b, h.ring)
	b = binary.LittleEndian.AppendUint32(b, h.receives)
	return append(b, 0, 0, 0, 0)
}

// parseHello takes a hello from private data, which a device may have padded.
func parseHello(b []byte) (h hello, err error) {
	if h.version, err = agree(b); err != nil {
		return h, err
	}
	h.ring = parseRing(b[8:])
	h.receives = binary.LittleEndian.Uint32(b[24:])
	if flaw := flawOf(h.ring); flaw != "" {
		return hello{}, fmt.Errorf("%w: %s", ErrProtocol, flaw)
	}
	if h.receives < leastReceives || h.receives > mostReceives {
		return hello{}, fmt.Errorf("%w: it posts %d receives", ErrProtocol, h.receives)
	}
	return h, nil
}

func appendRing(b []byte, r mem.RemoteSegment) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Addr)
	b = binary.LittleEndian.AppendUint32(b, r.Context)
	return binary.LittleEndian.AppendUint32(b, r.Len)
}

// parseRing reads the description of a ring, whose length the caller has checked.
func parseRing(b []byte) (r mem.RemoteSegment) {
	r.Addr = binary.LittleEndian.Uint64(b)
	r.Context = binary.LittleEndian.Uint32(b[8:])
	r.Len = binary.LittleEndian.Uint32(b[12:])
	return r
}

// flawOf says why memory is no ring, or nothing.
func flawOf(r mem.RemoteSegment) string {
	switch n := r.Len; {
	case n < leastRing || n > mostRing || n&(n-1) != 0:
		return "its ring has a size that no ring has"
	case r.Addr+uint64(n) < r.Addr:
		return "its ring has no end"
	}
	return ""
}

// agree checks the part of a hello that all versions have, and returns the newest version that both
// ends speak. A hello whose newest version is 0 speaks its oldest alone.
func agree(b []byte) (uint8, error) {
	if len(b) < helloSize || string(b[:4]) != magic {
		return 0, fmt.Errorf("%w: it speaks another protocol than package stream", ErrProtocol)
	}
	from, to := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])
	to = cmp.Or(to, from)
	both := min(to, newest)
	if both < max(from, oldest) {
		return 0, fmt.Errorf("%w: it speaks %s, and this end %s", ErrProtocol, versions(from, to), versions(oldest, newest))
	}
	return uint8(both), nil
}

func versions(from, to uint16) string {
	if from == to {
		return fmt.Sprint("version ", from)
	}
	return fmt.Sprintf("versions %d to %d", from, to)
}

// message is the header of a message.
type message struct {
	produced, consumed, granted uint64
	inline                      int
	flags                       uint64            // flagFIN and so on, see has
	ring                        mem.RemoteSegment // the larger one, or the buffer
}

// has reports whether a message has one of the flags:
//
//	flagFIN     the sender sends no bytes behind this message
//	flagRing    it offers ring, which is larger
//	flagMoved   this message's bytes are the first in the larger ring
//	flagOffer   ring is the buffer of a Read
//	flagDirect  this message's bytes are in the buffer that was offered
func (m *message) has(flags uint64) bool { return m.flags&flags != 0 }

// put encodes the message of a version, but for its bytes, into b, and returns its length.
func (m *message) put(b []byte, version uint8) int {
	b = b[:slotSize]
	binary.LittleEndian.PutUint64(b, m.produced)
	binary.LittleEndian.PutUint64(b[8:], m.consumed)
	binary.LittleEndian.PutUint64(b[16:], m.granted)
	binary.LittleEndian.PutUint64(b[24:], uint64(m.inline)|m.flags<<16|uint64(version)<<56)
	if m.has(flagRing | flagOffer) {
		return len(appendRing(b[:headerSize], m.ring))
	}
	return headerSize + m.inline
}

// parse takes a header from a slot into m, which is empty. It returns false for one that
// the version does not know. Before a receive is posted, byte 31 of its slot is zero, so a
// message that is shorter than a header is not taken for the one before it.
//
// It returns no message: that would be copied in wider pieces than it was written in, for
// which the processor waits.
func (m *message) parse(b []byte, version uint8) bool {
	b = b[:slotSize]
	m.produced = binary.LittleEndian.Uint64(b)
	m.consumed = binary.LittleEndian.Uint64(b[8:])
	m.granted = binary.LittleEndian.Uint64(b[16:])
	last := binary.LittleEndian.Uint64(b[24:])
	m.inline = int(last & 0xffff)
	m.flags = last >> 16 & allFlags
	if m.has(flagRing | flagOffer) {
		m.ring = parseRing(b[headerSize:])
	}
	return last&^(0xffff|allFlags<<16) == uint64(version)<<56 && m.inline <= maxInline && (m.flags == 0 || m.consistent())
}

// consistent reports whether a message says nothing twice.
func (m *message) consistent() bool {
	const ofRing, ofPlace = flagRing | flagOffer, flagDirect | flagMoved
	if m.flags&ofRing == ofRing || m.flags&ofPlace == ofPlace {
		return false
	}
	return m.inline == 0 || !m.has(flagRing|flagOffer|flagDirect)
}
