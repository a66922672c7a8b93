package wire_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// The FPDUs of RFC 5044 figures 5 and 6, and others whose CRCs were made by
// other implementations.
var fpduRows = []struct {
	name    string
	pos     uint64
	markers bool
	bytes   string
	header  wire.Header
	payload int
}{
	{
		"RFC 5044 figure 5", 0, true,
		"00000000 002a4143 00000000 00000000 00000001 00000000" + zeros24 + "52239983",
		wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1},
		24,
	},
	{
		"RFC 5044 figure 6", 492, true,
		"002a4143 00000000 00000000 00000002 00000000 00000014" + zeros24 + "84925898",
		wire.Header{Opcode: wire.OpSend, Last: true, MSN: 2},
		24,
	},
	{
		"figure 5 without its marker", 0, false,
		"002a4143 00000000 00000000 00000001 00000000" + zeros24 + "b7243ec3",
		wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1},
		24,
	},
	{
		"a zero-length RDMA Write as RTR", 0, false,
		"000ec140 00000001 00000000 00000000 ebd34c5f",
		wire.Header{Opcode: wire.OpWrite, Last: true, STag: 1},
		0,
	},
}

func TestGoldenFPDUsAreReadAndMade(t *testing.T) {
	for _, row := range fpduRows {
		t.Run(row.name, func(t *testing.T) {
			b := unhex(t, row.bytes)
			var ulpdu []byte
			var n int
			var err error
			if row.markers {
				ulpdu, n, err = wire.ParseMarkedFPDU(nil, b, row.pos, true)
				require.NoError(t, err)
				assert.Equal(t, b, wire.AppendMarkedFPDU(nil, row.pos, true, ulpdu))
				assert.Equal(t, len(b), wire.MarkedSize(row.pos, len(ulpdu)))
			} else {
				ulpdu, n, err = wire.ParseFPDU(b, true)
				require.NoError(t, err)
				assert.Equal(t, b, wire.AppendFPDU(nil, true, ulpdu))
				assert.Equal(t, len(b), wire.FPDUSize(len(ulpdu)))
			}
			assert.Equal(t, len(b), n)

			var h wire.Header
			n, err = h.Parse(ulpdu, len(ulpdu))
			require.NoError(t, err)
			assert.Equal(t, row.header, h)
			assert.Len(t, ulpdu[n:], row.payload)
		})
	}
}

// RFC 5044 figure 4: an FPDU of 16 octets with a marker after the tenth. The
// figure has no CRC.
func TestTheFPDUOfFigure4OfRFC5044IsRead(t *testing.T) {
	ulpdu := unhex(t, "00010203 04050607 08090a0b 0c0d0e0f")
	b := unhex(t, "0010 00010203 04050607 0809 0000000c 0a0b0c0d0e0f 0000 00000000")
	const pos = wire.MarkerInterval - 12
	assert.Equal(t, b, wire.AppendMarkedFPDU(nil, pos, false, ulpdu))
	got, n, err := wire.ParseMarkedFPDU(nil, b, pos, false)
	require.NoError(t, err)
	assert.Equal(t, len(b), n)
	assert.Equal(t, ulpdu, got)
}

// RFC 5044 section 4.3: the markers of a stream whose first octet has sequence
// number 11 begin at 11, 523, 1035 and so on.
func TestMarkersStandAtTheRFCsPositions(t *testing.T) {
	b := wire.AppendMarkedFPDU(nil, 0, false, make([]byte, 1200))
	for _, seq := range []int{11, 523, 1035} {
		at := seq - 11
		want := uint16(0)
		if at > 0 {
			want = uint16(at - 4) // every marker points to the same ULPDU_Length
		}
		assert.Equal(t, []byte{0, 0, byte(want >> 8), byte(want)}, b[at:at+4])
	}
}

// Frames as siw sent them for rping, and their fields. The pad-and-CRC field is
// zero: siw does not ask for CRCs.
func TestTheFramesOfRpingAreReadAndMade(t *testing.T) {
	send := unhex(t, "0022 4143 00000000 00000000 00000001 00000000 00112233 44556677 8899aabb ccddeeff 00000000")
	readReq := unhex(t, `002e 4141 00000000 00000001 00000001 00000000
		ddd92800 00005602e9da5170 00000040 1f723f00 000056120c236470 00000000`)
	payload := "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" +
		"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
	readResp := unhex(t, "004e c142 ddd92800 00005602e9da5170"+payload+"00000000")
	write := unhex(t, "004e c140 482a9000 000056120c233170"+payload+"00000000")

	for _, row := range []struct {
		name    string
		bytes   []byte
		header  wire.Header
		payload int
	}{
		{"Send", send, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, 16},
		{"Read Request", readReq, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 1}, wire.ReadRequestSize},
		{"Read Response", readResp, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 0xddd92800, TO: 0x5602e9da5170}, 64},
		{"Write", write, wire.Header{Opcode: wire.OpWrite, Last: true, STag: 0x482a9000, TO: 0x56120c233170}, 64},
	} {
		t.Run(row.name, func(t *testing.T) {
			ulpdu, n, err := wire.ParseFPDU(row.bytes, false)
			require.NoError(t, err)
			assert.Equal(t, len(row.bytes), n)
			var h wire.Header
			n, err = h.Parse(ulpdu, len(ulpdu))
			require.NoError(t, err)
			assert.Equal(t, row.header, h)
			require.Len(t, ulpdu[n:], row.payload)

			b := h.AppendFramed(nil, row.payload)
			b = append(b, ulpdu[n:]...)
			assert.Equal(t, row.bytes, wire.AppendTrailer(b, len(ulpdu), 0, false))
		})
	}

	var r wire.ReadRequest
	n, err := r.Parse(readReq[2+wire.UntaggedHeaderSize:])
	require.NoError(t, err)
	assert.Equal(t, wire.ReadRequestSize, n)
	assert.Equal(t, wire.ReadRequest{
		SinkSTag: 0xddd92800, SinkTO: 0x5602e9da5170, Size: 64, SrcSTag: 0x1f723f00, SrcTO: 0x56120c236470,
	}, r)
	assert.Equal(t, readReq[20:48], r.Append(nil))
}

// RFC 5041 section 5.2's examples: the payload that a MULPDU of 1500 leaves.
func TestHeaderSizesMatchTheRFCsSegmentationExamples(t *testing.T) {
	assert.Equal(t, 1482, 1500-(&wire.Header{Opcode: wire.OpSend}).Size())
	assert.Equal(t, 1486, 1500-(&wire.Header{Opcode: wire.OpWrite}).Size())
}
