// Package wire encodes what the two sides of a test tell each other, in the format of
// the C dapltest, version 6: structs of 32-bit numbers, little-endian, without gaps.
// Each message is sent in a buffer of [ControlSize] bytes and begins with the struct.
//
// The first connection, the control connection, carries a [ClientInfo], a command and
// the answer, a [ServerInfo]. On the connections of the test itself, the two sides
// first tell each other which memory they have for RDMA: [AppendMemory].
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the version of the format.
const Version = 6

// ControlSize is the length of every message on the control connection in bytes,
// whatever its content.
const ControlSize = 8192

// Port is the port that servers listen on by default.
const Port = 62000

// PrivateData is the private data of each connection request of a transaction test.
const PrivateData = "DAPL and RDMA rule! Test 4321."

// TestType says which test a client wants.
type TestType uint32

// The tests that a client may want.
const (
	TransactionTest TestType = 1
	PerformanceTest TestType = 2
	QuitTest        TestType = 4
)

// Transfer is a kind of transfer.
type Transfer uint32

// The transfers.
const (
	RDMARead  Transfer = 0
	RDMAWrite Transfer = 1
	SendRecv  Transfer = 2
)

func (t Transfer) String() string {
	switch t {
	case RDMARead:
		return "RDMA_READ"
	case RDMAWrite:
		return "RDMA_WRITE"
	case SendRecv:
		return "SEND_RECV"
	}
	return fmt.Sprintf("Transfer(%d)", uint32(t))
}

// Short is the name on command lines and in the output of a performance test.
func (t Transfer) Short() string {
	switch t {
	case RDMARead:
		return "RR"
	case RDMAWrite:
		return "RW"
	case SendRecv:
		return "SR"
	}
	return t.String()
}

// The bounds of the numbers that a peer may send.
const (
	MaxOps        = 100
	MaxThreads    = 256
	MaxEPs        = 256
	MaxSegments   = 64
	MaxTransfer   = 1 << 30
	maxIterations = 1 << 31
	nameSize      = 256
)

// ErrFormat is what each error matches that a peer's bytes cause.
var ErrFormat = errors.New("not a message of dapltest")

// ClientInfo is a client's first message. In the C program, a request to quit says that
// the client has no threads.
type ClientInfo struct {
	Test    TestType
	Threads uint32
}

// Append appends the encoding of the message, without padding.
func (c ClientInfo) Append(b []byte) []byte {
	return numbers(b, Version, 1, uint32(c.Test), c.Threads)
}

// ParseClientInfo reads a message.
func ParseClientInfo(b []byte) (c ClientInfo, err error) {
	r := reader{b: b}
	r.version()
	r.littleEndian()
	c.Test, c.Threads = TestType(r.u32()), r.u32()
	r.want(c.Threads <= MaxThreads && (c.Threads >= 1 || c.Test == QuitTest), "%d threads", c.Threads)
	return c, r.err
}

// ServerInfo is the server's answer: it listens for the test's connections at this port
// and the ports after it.
type ServerInfo struct{ FirstPort uint32 }

// Append appends the encoding of the message.
func (s ServerInfo) Append(b []byte) []byte { return numbers(b, Version, 1, s.FirstPort) }

// ParseServerInfo reads a message.
func ParseServerInfo(b []byte) (s ServerInfo, err error) {
	r := reader{b: b}
	r.version()
	r.littleEndian()
	s.FirstPort = r.u32()
	return s, r.err
}

func numbers(b []byte, ns ...uint32) []byte {
	for _, n := range ns {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}

func text(b []byte, s string) []byte {
	field := make([]byte, nameSize)
	copy(field[:nameSize-1], s)
	return append(b, field...)
}

func flag(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

// reader reads numbers from a message; after the first error it returns zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) want(ok bool, format string, args ...any) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
	}
}

func (r *reader) take(n int) []byte {
	r.want(len(r.b) >= n, "it ends too soon")
	if r.err != nil {
		return make([]byte, n)
	}
	field := r.b[:n]
	r.b = r.b[n:]
	return field
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) flag() bool  { return r.u32() != 0 }

func (r *reader) text() string {
	s, _, ended := bytes.Cut(r.take(nameSize), []byte{0})
	r.want(ended, "a name of more than %d bytes", nameSize-1)
	return string(s)
}

func (r *reader) version() {
	v := r.u32()
	r.want(v == Version, "version %d, this is %d", v, Version)
}

// littleEndian fails unless the peer is little-endian.
func (r *reader) littleEndian() {
	r.want(r.flag(), "a big-endian peer is not supported")
}
