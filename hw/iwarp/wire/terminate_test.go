package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// The octets that follow a Terminate's control field in these tests: a segment length
// with a tagged header, with an untagged one, with a Read Request's, and the request
// itself.
const (
	quotedTagged   = "0012 c140 01020304 1112131415161718 "
	quotedUntagged = "0022 4143 00000000 00000000 00000009 00000000 "
	quotedRead     = "002e 4141 00000000 00000001 00000009 00000000 "
	readRequest    = "ddd92800 00005602e9da5170 00000040 1f723f00 000056120c236470 "
)

var theReadRequest = wire.ReadRequest{
	SinkSTag: 0xddd92800, SinkTO: 0x5602e9da5170, Size: 64, SrcSTag: 0x1f723f00, SrcTO: 0x56120c236470,
}

func TestEveryTerminateCodeInTheRFCsForm(t *testing.T) {
	for _, row := range termRows {
		want := []byte{row.layer<<4 | row.etype, row.term, 0, 0}
		term := wire.Terminate{Code: row.code}
		assert.Equal(t, want, term.Append(nil), row.code)
		for _, flags := range []byte{0xc0, 0xe0} { // with headers nothing is ambiguous
			b := append(bytes.Clone(want), unhex(t, quotedRead+readRequest)...)
			b[2] = flags
			for _, established := range []bool{false, true} {
				got, _, err := wire.ParseTerminate(b, established)
				require.NoError(t, err)
				assert.Equal(t, row.code, got.Code)
				assert.False(t, got.Swapped)
			}
		}
	}
}

// siw's Terminates: those that it was seen to send, and the others that its source lists.
func TestTheTerminatesOfSiwAreRead(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes string
		want  wire.Terminate
	}{
		{
			"a write to a bad STag", "11 00 03 00 0004 c140 01020304 1112131415161718",
			wire.Terminate{Code: wire.TermTaggedSTag, LengthValid: true, Length: 4, Header: unhex(t, quotedTagged)[2:]},
		},
		{
			"a bad DDP version", "21 06 00 00", // without the header, whose layout siw does not know
			wire.Terminate{Code: wire.TermUntaggedVersion},
		},
		{
			"a bad opcode", "20 06 00 00",
			wire.Terminate{Code: wire.TermOperationOpcode},
		},
		{
			"a bad RDMAP version", "20 05 00 00",
			wire.Terminate{Code: wire.TermOperationVersion},
		},
		{
			"a bad message number", "21 03 03 00 0010 4143 00000000 00000000 00000009 00000000",
			wire.Terminate{Code: wire.TermUntaggedMSN, LengthValid: true, Length: 16, Header: unhex(t, quotedUntagged)[2:]},
		},
		{
			"no receive, or one too small", "21 02 03 00 0010 4143 00000000 00000000 00000009 00000000",
			wire.Terminate{Code: wire.TermUntaggedNoBuffer, LengthValid: true, Length: 16, Header: unhex(t, quotedUntagged)[2:]},
		},
		{
			// The length is the payload's, and the MSN the read's size.
			"a read of a bad STag", "10 00 07 00 0000 4141 00000000 00000001 00000040 00000000" + readRequest,
			wire.Terminate{
				Code: wire.TermProtectionSTag, LengthValid: true,
				Header:  unhex(t, "4141 00000000 00000001 00000040 00000000"),
				HasRead: true, Read: theReadRequest,
			},
		},
		{
			// R is set, but no Read Request follows.
			"an STag that can't be invalidated", "10 09 07 00 0010 4144 0a0b0c0d 00000000 00000009 00000000",
			wire.Terminate{
				Code: wire.TermProtectionInvalidate, LengthValid: true, Length: 16,
				Header: unhex(t, "4144 0a0b0c0d 00000000 00000009 00000000"),
			},
		},
		{
			"more reads than IRD", "20 07 03 00 0000 4141 00000000 00000001 00000009 00000000",
			wire.Terminate{Code: wire.TermOperationStream, LengthValid: true, Header: unhex(t, quotedRead)[2:]},
		},
		{"a bad CRC", "02 02 00 00", wire.Terminate{Code: wire.TermMPACRC}},
		{"a bad FPDU start", "02 03 00 00", wire.Terminate{Code: wire.TermMPAMarker}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			got, n, err := wire.ParseTerminate(b, true)
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			row.want.Swapped = true
			assert.Equal(t, row.want, got)

			again, _, err := wire.ParseTerminate(got.Append(nil), true)
			require.NoError(t, err)
			again.Swapped = true
			assert.Equal(t, row.want, again, "our form says the same")
		})
	}
	t.Run("a local catastrophic error reads the same in both forms", func(t *testing.T) {
		got, _, err := wire.ParseTerminate(unhex(t, "00 ff 00 00"), true)
		require.NoError(t, err)
		assert.Equal(t, wire.Terminate{Code: 0x00ff}, got)
		assert.NotEqual(t, "unknown", got.Code.Text())
	})
}

// A whole FPDU as siw builds it for a read that it refuses.
func TestAnFPDUWithATerminateFromSiw(t *testing.T) {
	b := unhex(t, `0046 4147 00000000 00000002 00000001 00000000
		10000700 0000 4141 00000000 00000001 00000040 00000000`+readRequest+"00000000")
	ulpdu, n, err := wire.ParseFPDU(b, false)
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	var h wire.Header
	n, err = h.Parse(ulpdu, len(ulpdu))
	require.NoError(t, err)
	assert.Equal(t, wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}, h)
	term, _, err := wire.ParseTerminate(ulpdu[n:], true)
	require.NoError(t, err)
	assert.Equal(t, wire.TermProtectionSTag, term.Code)
	assert.Equal(t, theReadRequest, term.Read)
}

// The control fields that mean one thing in the RFC's form and another in siw's: whether
// a message went before decides.
func TestAnAmbiguousTerminateIsReadByWhatWasSentBefore(t *testing.T) {
	for _, row := range []struct {
		bytes         string
		before, after wire.TermCode
	}{
		{"20 01 00 00", wire.TermMPALost, wire.TermMPALost},
		{"20 02 00 00", wire.TermMPACRC, wire.TermMPACRC},
		{"20 03 00 00", wire.TermMPAMarker, wire.TermMPAMarker},
		{"20 04 00 00", wire.TermMPARequest, wire.TermMPARequest},
		{"20 05 00 00", wire.TermMPALocal, wire.TermOperationVersion},
		{"20 06 00 00", wire.TermMPAIRD, wire.TermOperationOpcode},
		{"20 07 00 00", wire.TermMPARTR, wire.TermOperationStream},
		{"20 08 00 00", 0x2008, wire.TermOperationGlobal},
		{"20 09 00 00", 0x2009, wire.TermOperationInvalidate},
		{"20 0a 00 00", 0x200a, 0x200a},
		{"20 ff 00 00", 0x20ff, wire.TermOperationUnspecified},
		{"02 00 00 00", 0x0200, 0x0200},
		{"02 01 00 00", wire.TermMPALost, wire.TermMPALost},
		{"02 04 00 00", wire.TermMPARequest, wire.TermMPARequest},
		{"02 05 00 00", wire.TermMPALocal, wire.TermOperationVersion},
		{"02 06 00 00", wire.TermMPAIRD, wire.TermOperationOpcode},
		{"02 07 00 00", wire.TermMPARTR, wire.TermOperationStream},
		{"02 08 00 00", wire.TermOperationGlobal, wire.TermOperationGlobal},
		{"02 ff 00 00", wire.TermOperationUnspecified, wire.TermOperationUnspecified},
		// Impossible in the RFC's form: layer 3 and up, MPA with a type, type 3 and up.
		{"21 01 00 00", wire.TermUntaggedQueue, wire.TermUntaggedQueue},
		{"21 06 c0 00" + quotedUntagged, wire.TermUntaggedVersion, wire.TermUntaggedVersion},
		// Impossible in both: as it came.
		{"33 01 00 00", 0x3301, 0x3301},
		{"50 01 00 00", 0x5001, 0x5001},
		{"03 01 00 00", 0x0301, 0x0301},
		{"22 01 00 00", 0x2201, 0x2201},
		// Possible in the RFC's form, and without siw's flags: the RFC's.
		{"12 01 00 00", wire.TermUntaggedQueue, wire.TermUntaggedQueue},
		{"10 00 00 00", wire.TermDDPLocal, wire.TermDDPLocal},
		{"01 02 00 00", wire.TermProtectionAccess, wire.TermProtectionAccess},
	} {
		b := unhex(t, row.bytes)
		got, _, err := wire.ParseTerminate(b, false)
		require.NoError(t, err, row.bytes)
		assert.Equal(t, row.before, got.Code, "%s first of all: %v", row.bytes, got.Code)
		got, _, err = wire.ParseTerminate(b, true)
		require.NoError(t, err, row.bytes)
		assert.Equal(t, row.after, got.Code, "%s later: %v", row.bytes, got.Code)
	}
}

func TestEveryQuoteOfATerminateIsParsed(t *testing.T) {
	for _, row := range []struct {
		name  string
		bytes string
		want  wire.Terminate
	}{
		{
			"nothing", "12 02 00 00",
			wire.Terminate{Code: wire.TermUntaggedNoBuffer},
		},
		{
			"the length alone", "12 02 80 00 0012",
			wire.Terminate{Code: wire.TermUntaggedNoBuffer, LengthValid: true, Length: 18},
		},
		{
			"a tagged header", "11 01 c0 00" + quotedTagged,
			wire.Terminate{Code: wire.TermTaggedBounds, LengthValid: true, Length: 18, Header: unhex(t, quotedTagged)[2:]},
		},
		{
			"a header with a length that is not valid", "11 01 40 00" + quotedTagged,
			wire.Terminate{Code: wire.TermTaggedBounds, Length: 18, Header: unhex(t, quotedTagged)[2:]},
		},
		{
			"an untagged header", "12 05 c0 00" + quotedUntagged,
			wire.Terminate{Code: wire.TermUntaggedTooLong, LengthValid: true, Length: 34, Header: unhex(t, quotedUntagged)[2:]},
		},
		{
			"a read request", "01 02 e0 00" + quotedRead + readRequest,
			wire.Terminate{
				Code: wire.TermProtectionAccess, LengthValid: true, Length: 46,
				Header: unhex(t, quotedRead)[2:], HasRead: true, Read: theReadRequest,
			},
		},
		{
			"a read request alone", "01 02 20 00" + readRequest,
			wire.Terminate{Code: wire.TermProtectionAccess, HasRead: true, Read: theReadRequest},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			got, n, err := wire.ParseTerminate(append(b[:len(b):len(b)], 0xee), true)
			require.NoError(t, err)
			assert.Equal(t, len(b), n)
			assert.Equal(t, row.want, got)
			assert.Equal(t, b, got.Append(nil))
		})
	}
}

func TestATerminateThatIsCutShortStillHasItsCode(t *testing.T) {
	whole := unhex(t, "01 02 e0 00"+quotedRead+readRequest)
	for k := range whole {
		got, n, err := wire.ParseTerminate(whole[:k], true)
		require.ErrorIs(t, err, wire.ErrTerminate, "%d octets", k)
		assert.Zero(t, n)
		if k >= wire.TerminateControlSize {
			assert.Equal(t, wire.TermProtectionAccess, got.Code)
		}
		assert.False(t, got.HasRead)
	}
}

func TestNewTerminateQuotesWhatTheRFCWants(t *testing.T) {
	tagged := unhex(t, "c140 01020304 1112131415161718 aabbccdd")
	send := unhex(t, "4143 00000000 00000000 00000009 00000000 aabb")
	read := unhex(t, "4141 00000000 00000001 00000009 00000000"+readRequest)
	for _, row := range []struct {
		name   string
		code   wire.TermCode
		b      []byte
		length int
		want   wire.Terminate
	}{
		{
			"DDP, tagged", wire.TermTaggedBounds, tagged, 1442,
			wire.Terminate{Code: wire.TermTaggedBounds, LengthValid: true, Length: 1442, Header: tagged[:14]},
		},
		{
			"DDP, untagged", wire.TermUntaggedNoBuffer, send, 20,
			wire.Terminate{Code: wire.TermUntaggedNoBuffer, LengthValid: true, Length: 20, Header: send[:18]},
		},
		{
			"DDP, of a Read Request", wire.TermUntaggedMSN, read, 46,
			wire.Terminate{Code: wire.TermUntaggedMSN, LengthValid: true, Length: 46, Header: read[:18]},
		},
		{
			"protection, of a Read Request", wire.TermProtectionBounds, read, 46,
			wire.Terminate{
				Code: wire.TermProtectionBounds, LengthValid: true, Length: 46, Header: read[:18],
				HasRead: true, Read: theReadRequest,
			},
		},
		{
			"operation, of a Read Request", wire.TermOperationStream, read, 46,
			wire.Terminate{Code: wire.TermOperationStream, LengthValid: true, Length: 46, Header: read[:18]},
		},
		{
			"protection, of a Send", wire.TermProtectionInvalidate, send, 20,
			wire.Terminate{Code: wire.TermProtectionInvalidate, LengthValid: true, Length: 20, Header: send[:18]},
		},
		{
			"a segment that is all header", wire.TermTaggedSTag, tagged[:14], 14,
			wire.Terminate{Code: wire.TermTaggedSTag, LengthValid: true, Length: 14, Header: tagged[:14]},
		},
		{"local catastrophic", wire.TermRDMAPLocal, send, 20, wire.Terminate{Code: wire.TermRDMAPLocal}},
		{"DDP, local catastrophic", wire.TermDDPLocal, send, 20, wire.Terminate{Code: wire.TermDDPLocal}},
		{"MPA", wire.TermMPACRC, send, 20, wire.Terminate{Code: wire.TermMPACRC}},
		{"no message", wire.TermOperationStream, nil, 0, wire.Terminate{Code: wire.TermOperationStream}},
		{"a header cut short", wire.TermTaggedBounds, tagged[:13], 1442, wire.Terminate{Code: wire.TermTaggedBounds}},
		{"a ULPDU shorter than its header", wire.TermUntaggedMO, send, 17, wire.Terminate{Code: wire.TermUntaggedMO}},
		{
			"a Read Request cut short", wire.TermProtectionBounds, read[:45], 46,
			wire.Terminate{Code: wire.TermProtectionBounds, LengthValid: true, Length: 46, Header: read[:18]},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := wire.NewTerminate(row.code, row.b, row.length)
			assert.Equal(t, row.want, got)
			b := got.Append(nil)
			back, n, err := wire.ParseTerminate(b, row.code.Layer() != wire.LayerLLP)
			require.NoError(t, err)
			assert.Len(t, b, n)
			assert.Equal(t, row.want, back)
		})
	}
}

func TestAHeaderOfAWrongSizeIsLeftOut(t *testing.T) {
	term := wire.Terminate{Code: wire.TermTaggedSTag, LengthValid: true, Length: 5, Header: []byte{0xc1, 0x40}}
	assert.Equal(t, unhex(t, "11 00 80 00 0005"), term.Append(nil))
}
