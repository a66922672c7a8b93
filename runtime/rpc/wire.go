package rpc

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"godat/mem"
)

const (
	magic = "DATC"
	// oldest and newest are the versions of the protocol that an end speaks: the one of the release
	// before, and this one.
	oldest, newest = 2, 2

	helloSize = 22
	// firstHello is the size of a hello of an end that knows no metadata, and of one that speaks one
	// version alone.
	firstHello, metadataHello = 16, 20

	firstRefusal, refusalSize = 8, 10

	headerSize = 16
	// overhead is the most bytes of a message before its metadata and its payload.
	overhead = headerSize + 2*mem.RemoteSegmentSize + metadataHeader
	// metadataHeader is before metadata.
	metadataHeader = 2
)

// The kinds of messages.
const (
	kindCall = 1 + iota
	kindAnswer
	kindCancel
	kindCredit
	kindEnd
)

// The flags of a CALL.
const (
	flagSource = 1 << iota
	flagSink
	flagMetadata
	flagLater
	flagFetch
)

// errMalformed is what a peer's message is that breaks the rules.
var errMalformed = errors.New("rpc: the peer sent a message that breaks the protocol")

// hello is what an end says of itself when a connection is made.
type hello struct {
	calls             uint16
	receives, message uint32
	metadata          uint32 // 0 of an end that knows none
	version           uint16 // of a peer's: what both ends speak
}

func (h hello) encode() []byte {
	b := append(make([]byte, 0, helloSize), magic...)
	b = binary.BigEndian.AppendUint16(b, oldest)
	b = binary.BigEndian.AppendUint16(b, h.calls)
	b = binary.BigEndian.AppendUint32(b, h.receives)
	b = binary.BigEndian.AppendUint32(b, h.message)
	b = binary.BigEndian.AppendUint32(b, h.metadata)
	return binary.BigEndian.AppendUint16(b, newest)
}

// parseHello decodes a peer's hello. A provider may have put zeros behind it.
func parseHello(b []byte) (h hello, err error) {
	speaks, err := agree(b, firstHello, metadataHello)
	if err != nil {
		return h, err
	}
	h = hello{calls: binary.BigEndian.Uint16(b[6:]), receives: binary.BigEndian.Uint32(b[8:]), message: binary.BigEndian.Uint32(b[12:]), version: speaks}
	if len(b) >= metadataHello {
		h.metadata = binary.BigEndian.Uint32(b[16:])
	}
	if h.calls == 0 || h.receives < 2 || h.message == 0 || h.receives > mostReceives {
		return h, errMalformed
	}
	return h, nil
}

var (
	errMagic   = errors.New("the peer does not speak this package's protocol")
	errVersion = errors.New("the peer speaks no version that this end speaks")
)

// agree checks the beginning of the private data, which has size bytes at least, and returns the newest
// version that both ends speak. The peer's oldest is behind the magic, and its newest at the offset
// last, if the private data goes as far: 0 says that it is the oldest.
func agree(b []byte, size, last int) (uint16, error) {
	if len(b) < size || string(b[:4]) != magic {
		return 0, errMagic
	}
	from, to := binary.BigEndian.Uint16(b[4:]), uint16(0)
	if len(b) >= last+2 {
		to = binary.BigEndian.Uint16(b[last:])
	}
	to = cmp.Or(to, from)
	both := min(to, newest)
	if both < max(from, oldest) {
		return 0, &unfit{from, to}
	}
	return both, nil
}

// unfit are the versions of a peer's with which this end has none in common.
type unfit struct{ from, to uint16 }

func (u *unfit) Error() string {
	return fmt.Sprintf("%s: it speaks %s of the protocol, and this end %s: %s", errVersion, versions(u.from, u.to), versions(oldest, newest), u.newer("the peer", "this end"))
}

func (u *unfit) Is(target error) bool { return target == errVersion } //nolint:errorlint // of this one

// newer says which of both ends is the newer one.
func (u *unfit) newer(peer, own string) string {
	if u.from > newest {
		return peer + " is the newer one"
	}
	return own + " is the newer one"
}

func versions(from, to uint16) string {
	if from == to {
		return fmt.Sprint("version ", from)
	}
	return fmt.Sprintf("versions %d to %d", from, to)
}

// refusal is what a server says when it rejects a connection.
func refusal(code uint16) []byte {
	b := append(make([]byte, 0, refusalSize), magic...)
	b = binary.BigEndian.AppendUint16(b, oldest)
	b = binary.BigEndian.AppendUint16(b, code)
	return binary.BigEndian.AppendUint16(b, newest)
}

// parseRefusal returns what a server said, or nil if that is not known.
func parseRefusal(b []byte) error {
	_, err := agree(b, firstRefusal, firstRefusal)
	switch {
	case err == nil:
		code := binary.BigEndian.Uint16(b[6:])
		return &Error{code, cmp.Or(refusals[code], "the server refuses the connection")}
	case errors.Is(err, errVersion):
		return err
	}
	return nil
}

// header is the beginning of a message.
type header struct {
	kind, flags byte
	code        uint16
	call        uint32
	taken       uint32
	timeout     uint32 // of a CALL
	written     uint32 // of an ANSWER, in the place of timeout
}

func (h *header) put(b []byte) {
	b[0], b[1] = h.kind, h.flags
	binary.BigEndian.PutUint16(b[2:], h.code)
	binary.BigEndian.PutUint32(b[4:], h.call)
	putTaken(b, h.taken)
	binary.BigEndian.PutUint32(b[12:], h.timeout|h.written) // of which one is 0
}

// putTaken sets taken in an encoded header.
func putTaken(b []byte, taken uint32) { binary.BigEndian.PutUint32(b[8:], taken) }

// putCall makes a CALL, with what is behind its header.
func putCall(b *mem.Buffer, h header, call *Call) {
	at := headerSize
	for _, memory := range []struct {
		flag byte
		what *mem.RemoteSegment
	}{{flagSource, &call.Source}, {flagSink, &call.Sink}} {
		if memory.what.Len != 0 {
			h.flags |= memory.flag
			_, _ = memory.what.AppendBinary(b.Resize(at + mem.RemoteSegmentSize)[:at]) // in its place
			at += mem.RemoteSegmentSize
		}
	}
	if n := len(call.metadata); n > 0 {
		h.flags |= flagMetadata
		to := b.Resize(at + metadataHeader + n)[at:]
		binary.BigEndian.PutUint16(to, uint16(n))
		at += metadataHeader + copy(to[metadataHeader:], call.metadata)
	}
	copy(b.Resize(at + len(call.Payload))[at:], call.Payload)
	h.kind = kindCall
	h.put(b.Bytes())
}

// putAnswer makes an ANSWER. The payload may be a part of the buffer.
func putAnswer(b *mem.Buffer, h header, payload []byte) {
	copy(b.Resize(headerSize + len(payload))[headerSize:], payload)
	h.kind = kindAnswer
	h.put(b.Bytes())
}

// bare makes a message without a payload.
func bare(b *mem.Buffer, kind byte, call uint32) *mem.Buffer {
	h := header{kind: kind, call: call}
	h.put(b.Resize(headerSize))
	return b
}

// isCall reports whether an encoded message is the CALL of that slot and turn.
func isCall(b []byte, call uint32) bool {
	return b[0] == kindCall && binary.BigEndian.Uint32(b[4:]) == call
}

// message is a header with what is behind it: the caller's memory and the metadata of a CALL, and the
// payload.
type message struct {
	header
	source, sink mem.RemoteSegment
	metadata     []byte
	payload      []byte
}

// parse decodes a message, and checks what can be told from it alone.
func parse(b []byte) (m message, err error) {
	if len(b) < headerSize {
		return m, errMalformed
	}
	m.header = header{
		kind: b[0], flags: b[1], code: binary.BigEndian.Uint16(b[2:]), call: binary.BigEndian.Uint32(b[4:]),
		taken: binary.BigEndian.Uint32(b[8:]), timeout: binary.BigEndian.Uint32(b[12:]),
	}
	if m.kind == kindAnswer {
		m.written, m.timeout = m.timeout, 0
	}
	m.payload = b[headerSize:]
	for _, part := range []struct {
		flag byte
		to   *mem.RemoteSegment
	}{{flagSource, &m.source}, {flagSink, &m.sink}} {
		if m.flags&part.flag == 0 {
			continue
		}
		if *part.to, err = mem.ParseRemoteSegment(m.payload); err != nil {
			return m, errMalformed
		}
		m.payload = m.payload[mem.RemoteSegmentSize:]
	}
	if m.kind == kindCall && m.flags&flagMetadata != 0 {
		if m.metadata, m.payload, err = splitMetadata(m.payload); err != nil {
			return m, err
		}
	}
	if !m.isProper(len(m.payload)) {
		err = errMalformed
	}
	return m, err
}

func (h *header) isProper(payload int) bool {
	if h.kind == kindCall {
		return h.flags&^(flagSource|flagSink|flagMetadata|flagLater|flagFetch) == 0
	}
	if h.flags != 0 || h.timeout != 0 {
		return false
	}
	switch h.kind {
	case kindAnswer:
		return true
	case kindCancel:
		return h.code == 0 && payload == 0
	case kindCredit, kindEnd:
		return h.code == 0 && payload == 0 && h.call == 0
	}
	return false
}
