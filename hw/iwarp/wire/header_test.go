package wire_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// headerRows has every message of RFC 5040 figures 4 and 5 and RFC 7306 figures
// 2 and 3, typed from their segment drawings. size is the whole ULPDU.
var headerRows = []struct {
	bytes string
	size  int
	want  wire.Header
}{
	{"c140 01020304 1112131415161718", 15, wire.Header{Opcode: wire.OpWrite, Last: true, STag: 0x01020304, TO: 0x1112131415161718}},
	{"8140 01020304 1112131415161718", 1442, wire.Header{Opcode: wire.OpWrite, STag: 0x01020304, TO: 0x1112131415161718}},
	{"4141 00000000 00000001 00000005 00000000", 46, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 5}},
	{"c142 01020304 1112131415161718", 14, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 0x01020304, TO: 0x1112131415161718}},
	{"8142 01020304 1112131415161718", 30, wire.Header{Opcode: wire.OpReadResponse, STag: 0x01020304, TO: 0x1112131415161718}},
	{"4143 00000000 00000000 00000001 00000000", 18, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}},
	{"0143 00000000 00000000 ffffffff 00010000", 1442, wire.Header{Opcode: wire.OpSend, MSN: 0xffffffff, MO: 0x10000}},
	{"4144 0a0b0c0d 00000000 00000002 00000000", 20, wire.Header{Opcode: wire.OpSendInvalidate, Last: true, STag: 0x0a0b0c0d, MSN: 2}},
	{"4145 00000000 00000000 00000003 00000000", 20, wire.Header{Opcode: wire.OpSendSE, Last: true, MSN: 3}},
	{"4146 0a0b0c0d 00000000 00000000 00000000", 20, wire.Header{Opcode: wire.OpSendSEInvalidate, Last: true, STag: 0x0a0b0c0d}},
	{"4147 00000000 00000002 00000001 00000000", 22, wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}},
	{"4148 00000000 00000000 00000004 00000000", 26, wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 4}},
	{"4149 00000000 00000000 00000005 00000000", 26, wire.Header{Opcode: wire.OpImmediateSE, Last: true, MSN: 5}},
	{"414a 00000000 00000001 00000006 00000000", 70, wire.Header{Opcode: wire.OpAtomicRequest, Last: true, MSN: 6}},
	{"414b 00000000 00000003 00000007 00000000", 30, wire.Header{Opcode: wire.OpAtomicResponse, Last: true, MSN: 7}},
}

func TestHeadersOfAllOpcodesAreReadAndMade(t *testing.T) {
	seen := map[wire.Opcode]bool{}
	for _, row := range headerRows {
		t.Run(row.want.Opcode.String(), func(t *testing.T) {
			b := unhex(t, row.bytes)
			h := wire.Header{TO: 1, STag: 2, MSN: 3, MO: 4, Opcode: 5} // reused
			n, err := h.Parse(b, row.size)
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			assert.Equal(t, row.want, h)
			assert.Equal(t, len(b), h.Size())
			assert.Equal(t, b, h.Append(nil))

			framed := append([]byte{'x', byte(row.size >> 8), byte(row.size)}, b...)
			assert.Equal(t, framed, h.AppendFramed([]byte("x"), row.size-len(b)))
			assert.LessOrEqual(t, len(framed)-1, wire.MaxFramedHeaderSize)
		})
		seen[row.want.Opcode] = true
	}
	assert.Len(t, seen, 12)
}

func TestAHeaderIsIncompleteUpToItsLastOctet(t *testing.T) {
	for _, row := range headerRows {
		b := unhex(t, row.bytes)
		for k := range b {
			var h wire.Header
			n, err := h.Parse(b[:k], row.size)
			require.ErrorIs(t, err, wire.ErrIncomplete, "%v: %d octets", row.want.Opcode, k)
			assert.Zero(t, n)
		}
	}
}

// The least ULPDU of each message is its headers. RFC 7306 section 6.3 and the fixed
// RDMAP headers ask for an exact length.
func TestAULPDUOfAWrongLengthIsRefused(t *testing.T) {
	least := map[wire.Opcode]int{
		wire.OpWrite: 14, wire.OpReadRequest: 46, wire.OpReadResponse: 14, wire.OpSend: 18,
		wire.OpSendInvalidate: 18, wire.OpSendSE: 18, wire.OpSendSEInvalidate: 18, wire.OpTerminate: 22,
		wire.OpImmediate: 26, wire.OpImmediateSE: 26, wire.OpAtomicRequest: 70, wire.OpAtomicResponse: 30,
	}
	exact := map[wire.Opcode]bool{
		wire.OpReadRequest: true, wire.OpImmediate: true, wire.OpImmediateSE: true,
		wire.OpAtomicRequest: true, wire.OpAtomicResponse: true,
	}
	for _, row := range headerRows {
		op := row.want.Opcode
		b := append(unhex(t, row.bytes), make([]byte, 100)...)
		for length := range least[op] {
			var h wire.Header
			_, err := h.Parse(b, length)
			require.ErrorIs(t, err, wire.ErrULPDUShort, "%v of %d octets", op, length)
		}
		for _, more := range []int{0, 1, 4, 28} {
			var h wire.Header
			_, err := h.Parse(b, least[op]+more)
			if exact[op] && more > 0 {
				require.ErrorIs(t, err, wire.ErrTooLong, "%v with %d octets more", op, more)
			} else {
				require.NoError(t, err, "%v with %d octets more", op, more)
			}
		}
	}
}

func TestAShortULPDUIsAnErrorBeforeItIsThere(t *testing.T) {
	var h wire.Header
	_, err := h.Parse(nil, 13)
	require.ErrorIs(t, err, wire.ErrULPDUShort)
	_, err = h.Parse(nil, 14)
	require.ErrorIs(t, err, wire.ErrIncomplete)
}

func TestABadHeaderIsRefused(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes string
		size  int
		want  *wire.Error
	}{
		{"tagged, DDP version 0", "c040 00000000 0000000000000000", 14, wire.ErrTaggedVersion},
		{"tagged, DDP version 2", "c240 00000000 0000000000000000", 14, wire.ErrTaggedVersion},
		{"untagged, DDP version 3", "4343 00000000 00000000 00000001 00000000", 18, wire.ErrUntaggedVersion},
		{"RDMAC's RDMAP version", "4103 00000000 00000000 00000001 00000000", 18, wire.ErrRDMAPVersion},
		{"RDMAP version 3", "c1c0 00000000 0000000000000000", 14, wire.ErrRDMAPVersion},
		{"opcode 12", "414c 00000000 00000000 00000001 00000000", 18, wire.ErrOpcode},
		{"opcode 15, tagged", "c14f 00000000 0000000000000000", 14, wire.ErrOpcode},
		{"a tagged Send", "c143 00000000 0000000000000000", 14, wire.ErrOpcodeModel},
		{"a tagged Terminate", "c147 00000000 0000000000000000", 22, wire.ErrOpcodeModel},
		{"an untagged Write", "4140 00000000 00000000 00000001 00000000", 18, wire.ErrOpcodeModel},
		{"an untagged Read Response", "4142 00000000 00000001 00000001 00000000", 18, wire.ErrOpcodeModel},
		{"a queue that does not exist", "4143 00000000 00000004 00000001 00000000", 18, wire.ErrQueue},
		{"another", "4143 00000000 01000000 00000001 00000000", 18, wire.ErrQueue},
		{"a Send on the read queue", "4143 00000000 00000001 00000001 00000000", 18, wire.ErrOpcodeQueue},
		{"a Read Request on the send queue", "4141 00000000 00000000 00000001 00000000", 46, wire.ErrOpcodeQueue},
		{"a Terminate on the read queue", "4147 00000000 00000001 00000001 00000000", 22, wire.ErrOpcodeQueue},
		{"an Atomic Response on the read queue", "414b 00000000 00000001 00000001 00000000", 30, wire.ErrOpcodeQueue},
		{"TO wraps", "c140 00000001 fffffffffffffff0", 14 + 17, wire.ErrTaggedWrap},
		{"TO ends where it would wrap", "c140 00000001 fffffffffffffff0", 14 + 16, wire.ErrTaggedWrap},
		{"a message of 2^32 octets", "4143 00000000 00000000 00000001 fffffff0", 18 + 16, wire.ErrTooLong},
		{"a Read Request with an offset", "4141 00000000 00000001 00000001 00000004", 46, wire.ErrMO},
		{"a Read Request that goes on", "0141 00000000 00000001 00000001 00000000", 46, wire.ErrTooLong},
		{"a Terminate that goes on", "0147 00000000 00000002 00000001 00000000", 22, wire.ErrTooLong},
		{"an Atomic Response with an offset", "414b 00000000 00000003 00000001 00000001", 30, wire.ErrMO},
	} {
		t.Run(row.name, func(t *testing.T) {
			var h wire.Header
			n, err := h.Parse(unhex(t, row.bytes), row.size)
			require.ErrorIs(t, err, row.want)
			assert.Zero(t, n)
		})
	}
}

func TestValidHeadersAreTaken(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes string
		size  int
		want  wire.Header
	}{
		{"reserved bits", "7d73 ffffffff 00000000 00000001 00000000", 18, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}},
		{"the last octet but one of all", "c140 00000001 fffffffffffffff0", 14 + 15, wire.Header{Opcode: wire.OpWrite, Last: true, STag: 1, TO: math.MaxUint64 - 15}},
		{"any TO without payload", "c140 00000000 ffffffffffffffff", 14, wire.Header{Opcode: wire.OpWrite, Last: true, TO: math.MaxUint64}},
		{"the longest message", "4143 00000000 00000000 00000001 fffffff0", 18 + 15, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1, MO: 0xfffffff0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var h wire.Header
			_, err := h.Parse(unhex(t, row.bytes), row.size)
			require.NoError(t, err)
			assert.Equal(t, row.want, h)
		})
	}
}

func TestEachOpcodeHasItsProperties(t *testing.T) {
	type facts struct {
		tagged, send, solicited, invalidates, extension bool
		queue                                           wire.Queue
	}
	for op, want := range map[wire.Opcode]facts{
		wire.OpWrite:            {tagged: true},
		wire.OpReadRequest:      {queue: 1},
		wire.OpReadResponse:     {tagged: true},
		wire.OpSend:             {send: true},
		wire.OpSendInvalidate:   {send: true, invalidates: true},
		wire.OpSendSE:           {send: true, solicited: true},
		wire.OpSendSEInvalidate: {send: true, solicited: true, invalidates: true},
		wire.OpTerminate:        {queue: 2},
		wire.OpImmediate:        {extension: true},
		wire.OpImmediateSE:      {extension: true, solicited: true},
		wire.OpAtomicRequest:    {extension: true, queue: 1},
		wire.OpAtomicResponse:   {extension: true, queue: 3},
	} {
		assert.Equal(t, want, facts{
			op.Tagged(), op.Send(), op.Solicited(), op.Invalidates(), op.Extension(), op.Queue(),
		}, op.String())
		assert.True(t, op.Known())
		assert.NotContains(t, op.String(), "(")
	}
	for op := wire.Opcode(12); op < 40; op++ {
		assert.False(t, op.Known())
		assert.False(t, op.Extension())
		assert.Contains(t, op.String(), "Opcode(")
	}
}

func TestAReadRequestThatWrapsIsRefused(t *testing.T) {
	for _, row := range []struct {
		to   uint64
		size uint32
		want error
	}{
		{math.MaxUint64, 0, nil},
		{math.MaxUint64 - 10, 10, nil},
		{math.MaxUint64 - 10, 11, wire.ErrWrap},
		{math.MaxUint64 - 10, math.MaxUint32, wire.ErrWrap},
	} {
		in := wire.ReadRequest{SrcTO: row.to, Size: row.size, SinkTO: math.MaxUint64, SinkSTag: 3}
		var out wire.ReadRequest
		_, err := out.Parse(in.Append(nil))
		require.ErrorIs(t, err, row.want)
		assert.Equal(t, in, out, "the fields are there for the Terminate")
	}
	var r wire.ReadRequest
	_, err := r.Parse(make([]byte, wire.ReadRequestSize-1))
	require.ErrorIs(t, err, wire.ErrIncomplete)
}
