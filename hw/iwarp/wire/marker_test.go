package wire_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// mark is a second, plain way to put markers into one FPDU, without CRC: octet
// by octet from the RFC's rule.
func mark(fpdu []byte, pos uint64) []byte {
	var out []byte
	start := -1 // position of ULPDU_Length in out
	for _, c := range fpdu {
		if (pos+uint64(len(out)))%512 == 0 {
			ptr := 0
			if start >= 0 {
				ptr = len(out) - start
			}
			out = append(out, 0, 0, byte(ptr>>8), byte(ptr))
		}
		if start < 0 {
			start = len(out)
		}
		out = append(out, c)
	}
	return out
}

func TestMarkersAreReadAtEveryPosition(t *testing.T) {
	ulpdu := make([]byte, 1100)
	for i := range ulpdu {
		ulpdu[i] = byte(i)
	}
	for _, length := range []int{0, 14, 17, 488, 500, 502, 506, 508, 1018, 1100} {
		for pos := uint64(0); pos <= wire.MarkerInterval; pos += 4 {
			want := mark(wire.AppendFPDU(nil, false, ulpdu[:length]), pos)
			got := wire.AppendMarkedFPDU(nil, pos, false, ulpdu[:length/2], ulpdu[length/2:length])
			require.Equal(t, want, got, "length %d at %d", length, pos)
			require.Equal(t, len(want), wire.MarkedSize(pos, length), "length %d at %d", length, pos)
		}
	}
}

func TestAMarkerBetweenPadAndCRCBelongsToItsFPDU(t *testing.T) {
	const pos = 4
	ulpdu := make([]byte, 506) // length, ULPDU: 508 octets, up to position 512
	b := wire.AppendMarkedFPDU(nil, pos, true, ulpdu)
	require.Len(t, b, 508+wire.MarkerSize+wire.CRCSize)
	assert.Equal(t, uint16(508), binary.BigEndian.Uint16(b[510:]), "it points back")
	assert.Equal(t, wire.UpdateCRC(0, b[:512]), binary.LittleEndian.Uint32(b[512:]), "and the CRC covers it")
}

func TestAMarkerAfterTheCRCBelongsToTheNextFPDU(t *testing.T) {
	const pos = 4
	first := wire.AppendMarkedFPDU(nil, pos, true, make([]byte, 502)) // up to position 512
	assert.Len(t, first, 508, "no marker in it")
	second := wire.AppendMarkedFPDU(nil, pos+508, true, make([]byte, 14))
	assert.Equal(t, []byte{0, 0, 0, 0, 0, 14}, second[:6])
	assert.Equal(t, wire.UpdateCRC(0, second[:20]), binary.LittleEndian.Uint32(second[20:]))
}

func TestMarkersAreTakenOutInPlace(t *testing.T) {
	ulpdu := bytes.Repeat([]byte("0123456789abcdef"), 4000)
	for _, pos := range []uint64{0, 4, 256, 508, 1<<40 + 8} {
		b := wire.AppendMarkedFPDU(nil, pos, true, ulpdu)
		size := len(b)
		got, n, err := wire.ParseMarkedFPDU(b[:0], b, pos, true)
		require.NoError(t, err)
		assert.Equal(t, size, n)
		assert.True(t, bytes.Equal(ulpdu, got))
		assert.Same(t, &b[0], &got[0])
	}
}

func TestAMarkedFPDUIsIncompleteUpToItsLastOctet(t *testing.T) {
	for _, pos := range []uint64{0, 500} {
		whole := wire.AppendMarkedFPDU(nil, pos, true, make([]byte, 33))
		for k := range whole {
			out, n, err := wire.ParseMarkedFPDU([]byte("kept"), whole[:k], pos, true)
			require.ErrorIs(t, err, wire.ErrIncomplete, "%d octets", k)
			assert.Zero(t, n)
			assert.Equal(t, "kept", string(out))
		}
	}
}

func TestABadMarkerIsRefused(t *testing.T) {
	const pos = 256
	whole := wire.AppendMarkedFPDU(nil, pos, false, make([]byte, 1000))
	for _, row := range []struct {
		name string
		at   int
		xor  byte
		want *wire.Error
	}{
		{"the first marker's pointer", 256 + 2, 1, wire.ErrMarker},
		{"the second marker's pointer", 256 + 512 + 3, 4, wire.ErrMarker},
		{"the pointer's two low bits, which count as zero", 256 + 3, 3, nil},
		{"reserved bits", 256, 0xff, nil},
		{"payload", 100, 0xff, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := bytes.Clone(whole)
			b[row.at] ^= row.xor
			_, n, err := wire.ParseMarkedFPDU(nil, b, pos, false)
			if row.want == nil {
				require.NoError(t, err)
				assert.Equal(t, len(b), n)
				return
			}
			require.ErrorIs(t, err, row.want)
			assert.Zero(t, n)
		})
	}
}

func TestAMarkerBeforeTheLengthMustBeZero(t *testing.T) {
	b := wire.AppendMarkedFPDU(nil, 0, false, make([]byte, 14))
	b[3] = 4
	_, _, err := wire.ParseMarkedFPDU(nil, b, 0, false)
	require.ErrorIs(t, err, wire.ErrMarker)
}

func TestTheCRCCoversMarkersAndIsCheckedFirst(t *testing.T) {
	for _, at := range []int{0, 3} { // reserved bits and pointer
		b := wire.AppendMarkedFPDU(nil, 0, true, make([]byte, 14))
		b[at] = 8
		_, _, err := wire.ParseMarkedFPDU(nil, b, 0, true)
		require.ErrorIs(t, err, wire.ErrCRC)
	}
}

func TestULPDUsBeyondAPointersReachAreRefused(t *testing.T) {
	longest := make([]byte, wire.MaxULPDU)
	b := wire.AppendMarkedFPDU(nil, 4, true, longest)
	got, _, err := wire.ParseMarkedFPDU(nil, b, 4, true)
	require.NoError(t, err)
	assert.Len(t, got, wire.MaxULPDU)

	assert.Panics(t, func() { wire.AppendMarkedFPDU(nil, 4, true, longest, []byte{0}) })
	_, _, err = wire.ParseMarkedFPDU(nil, unhex(t, "fd01"), 4, true)
	require.ErrorIs(t, err, wire.ErrULPDULong)
}
