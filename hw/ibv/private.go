package ibv

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"syscall"

	"godat/hw/internal/reject"
)

// transport says how a connection's messages carry private data.
type transport struct {
	iwarp bool // a message carries the data's length; on InfiniBand the length is fixed
	siw   bool // the device is the kernel's soft-iWARP
	tail  bool // this side adds and understands tails
}

// message is a message of the connection manager that carries private data.
type message uint8

const (
	msgRequest message = iota
	msgAccept
	msgReject
)

// roomInfiniBand is how many bytes of private data InfiniBand's messages carry, behind
// the header of an IP request.
var roomInfiniBand = [...]int{msgRequest: 56, msgAccept: 196, msgReject: 148}

// roomIWARP is how many bytes of private data a program may give the connection manager
// on iWARP; the library uses the rest of the message.
const roomIWARP = 240

// rejectHeader begins a consumer's reject: version 2.0 of DAT, version 2.0 of the
// C library's provider.
var rejectHeader = []byte{2, 0, 2, 0}

// note tells the peer where to write its farewell. A key of zero means nowhere.
type note struct {
	key  uint32
	addr uint64 // below 1<<16 on InfiniBand, where a tail has 16 bits for it
}

// A note on InfiniBand is also a number, in the values of a queue pair that pairs.
const noteBits = 16 // of the address

func (n note) packed() uint64 { return uint64(n.key)<<noteBits | n.addr }

func unpacked(n uint64) note { return note{key: uint32(n >> noteBits), addr: n & (1<<noteBits - 1)} }

// A tail on InfiniBand is key:32 addr:16 len:8 check:8 at the end of the message; on
// iWARP it is magic:32 key:32 addr:64 behind the data.
const (
	tailInfiniBand = 8
	tailIWARP      = 16
	tailMagic      = 0x67647431 // "gdt1"
)

// most is how many bytes of the owner's private data fit into every kind of message.
func (t transport) most() int {
	room, tail := roomInfiniBand[msgRequest], tailInfiniBand
	if t.iwarp {
		room, tail = roomIWARP, tailIWARP
	}
	if t.tail {
		room -= tail
	}
	return room
}

// pack makes a message's bytes from private data. tail says whether to add a tail: the
// caller adds one to each request, and to an answer when the request had one.
func (t transport) pack(m message, data []byte, tail bool, n note) []byte {
	data = bytes.Clone(data)
	if m == msgReject && (!t.iwarp || len(data) == 0) {
		data = append(bytes.Clone(rejectHeader), data...)
	}
	switch {
	case !tail || !t.tail:
		return data
	case t.iwarp && m == msgReject:
		return data // no connection, so no end to tell of
	case t.iwarp:
		data = binary.BigEndian.AppendUint32(data, tailMagic)
		data = binary.BigEndian.AppendUint32(data, n.key)
		return binary.BigEndian.AppendUint64(data, n.addr)
	}
	b := make([]byte, roomInfiniBand[m])
	copy(b, data)
	end := b[len(b)-tailInfiniBand:]
	binary.BigEndian.PutUint32(end, n.key)
	binary.BigEndian.PutUint16(end[4:], uint16(n.addr))
	end[6] = byte(len(data))
	end[7] = check(m, b)
	return b
}

// check computes the last byte of a tail on InfiniBand: a checksum of the message.
func check(m message, b []byte) byte {
	sum := crc32.NewIEEE()
	_, _ = sum.Write([]byte{byte(m), 'g', 'd', 't'})
	_, _ = sum.Write(b[:len(b)-1])
	return byte(sum.Sum32())
}

// unpack reverses pack, for a message of any peer. data is what the peer's consumer
// gave, as far as the message tells; tailed says that the peer understands tails.
func (t transport) unpack(m message, b []byte) (data []byte, n note, tailed bool) {
	data = b
	switch {
	case !t.tail:
	case t.iwarp && m != msgReject:
		data, n, tailed = cutIWARP(b)
	case !t.iwarp:
		data, n, tailed = cutInfiniBand(m, b)
	}
	if !tailed && !t.iwarp && len(bytes.Trim(data, "\x00")) == 0 {
		data = nil // zeros alone are padding
	}
	return append([]byte(nil), data...), n, tailed // nil if there is none
}

func cutIWARP(b []byte) (data []byte, n note, tailed bool) {
	at := len(b) - tailIWARP
	if at < 0 || binary.BigEndian.Uint32(b[at:]) != tailMagic {
		return b, note{}, false
	}
	return b[:at], note{binary.BigEndian.Uint32(b[at+4:]), binary.BigEndian.Uint64(b[at+8:])}, true
}

func cutInfiniBand(m message, b []byte) (data []byte, n note, tailed bool) {
	if len(b) != roomInfiniBand[m] {
		return b, note{}, false
	}
	at := len(b) - tailInfiniBand
	end, size := b[at:], int(b[at+6])
	if size > at || end[7] != check(m, b) || len(bytes.Trim(b[size:at], "\x00")) != 0 {
		return b, note{}, false
	}
	return b[:size], note{binary.BigEndian.Uint32(end), uint64(binary.BigEndian.Uint16(end[4:]))}, true
}

// consumerReject is InfiniBand's reason code of a reject by a consumer.
const consumerReject = 28

// consumers reports whether a reject's status is a consumer's. On iWARP that is
// ECONNREFUSED, except that soft-iWARP reports ECONNRESET, which it also reports when
// the peer hung up before it had answered.
func (t transport) consumers(status int) bool {
	switch {
	case !t.iwarp:
		return status == consumerReject
	case t.siw:
		return status == -int(syscall.ECONNRESET)
	}
	return status == -int(syscall.ECONNREFUSED)
}

// unpackReject reads a reject: whether the peer's consumer sent it, and the consumer's
// data. A provider's reject has the same status and is known by its bytes.
func (t transport) unpackReject(status int, b []byte) (data []byte, byConsumer bool) {
	if !t.consumers(status) || reject.IsByProvider(b) {
		return nil, false
	}
	data, _, tailed := t.unpack(msgReject, b)
	data, _ = bytes.CutPrefix(data, rejectHeader)
	if len(data) == 0 || !t.iwarp && !tailed && len(bytes.Trim(data, "\x00")) == 0 {
		return nil, true
	}
	return data, true
}
