package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

func TestAnFPDUIsPaddedToFourOctets(t *testing.T) {
	for _, row := range []struct{ length, pad, size int }{
		{0, 2, 8}, {1, 1, 8}, {2, 0, 8}, {3, 3, 12}, {14, 0, 20}, {18, 0, 24}, {46, 0, 52}, {65535, 3, 65544},
	} {
		assert.Equal(t, row.pad, wire.PadSize(row.length), "%d octets", row.length)
		assert.Equal(t, row.size, wire.FPDUSize(row.length), "%d octets", row.length)
	}
}

func TestAnFPDUIsIncompleteUpToItsLastOctet(t *testing.T) {
	whole := wire.AppendFPDU(nil, true, []byte("seventeen octets."))
	for k := range whole {
		ulpdu, n, err := wire.ParseFPDU(whole[:k], true)
		require.ErrorIs(t, err, wire.ErrIncomplete, "%d octets", k)
		assert.Nil(t, ulpdu)
		assert.Zero(t, n)
	}
}

func TestAnyFlippedBitBreaksTheCRC(t *testing.T) {
	whole := wire.AppendFPDU(nil, true, []byte("seventeen octets."))
	// Not the bits of ULPDU_Length: with another length the CRC is elsewhere.
	for bit := 8 * wire.FPDULengthSize; bit < 8*len(whole); bit++ {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		_, _, err := wire.ParseFPDU(b, true)
		require.ErrorIs(t, err, wire.ErrCRC, "bit %d", bit)
		_, _, err = wire.ParseFPDU(b, false)
		require.NoError(t, err, "without CRC nothing but the length counts")
	}
}

func TestTheCRCFieldIsZeroWithoutCRC(t *testing.T) {
	b := wire.AppendFPDU([]byte("before"), false, []byte("abc"), nil, []byte("defgh"))
	assert.Equal(t, append([]byte("before\x00\x08abcdefgh\x00\x00"), 0, 0, 0, 0), b)
	assert.Equal(t, unhex(t, "00000000"), wire.AppendTrailer(nil, 2, 0xdeadbeef, false))
}

func TestAnFPDUMadeInPiecesIsTheSameAsInOne(t *testing.T) {
	payload := []byte("some payload of 27 octets..")
	h := wire.Header{Opcode: wire.OpWrite, Last: true, STag: 7, TO: 99}
	for _, crc := range []bool{true, false} {
		want := wire.AppendFPDU(nil, crc, h.Append(nil), payload)

		// As for a vectored write: header, payload, trailer.
		head := h.AppendFramed(nil, len(payload))
		sum := wire.UpdateCRC(wire.UpdateCRC(0, head), payload)
		length := h.Size() + len(payload)
		tail := wire.AppendTrailer(nil, length, sum, crc)
		assert.Equal(t, want, bytes.Join([][]byte{head, payload, tail}, nil))

		n, err := wire.ParseTrailer(append(tail, 1), length, sum, crc)
		require.NoError(t, err)
		assert.Equal(t, len(tail), n)

		// As for a control message: in one buffer.
		prefix := []byte("prefix")
		b := append(h.AppendFramed(prefix, len(payload)), payload...)
		assert.Equal(t, append(prefix, want...), wire.SealFPDU(b, len(prefix), crc))
	}
}

func TestABadTrailerIsRefused(t *testing.T) {
	sum := wire.UpdateCRC(0, []byte("\x00\x03abc"))
	tail := wire.AppendTrailer(nil, 3, sum, true)
	require.Len(t, tail, wire.MaxTrailerSize)
	for k := range tail {
		_, err := wire.ParseTrailer(tail[:k], 3, sum, true)
		require.ErrorIs(t, err, wire.ErrIncomplete)
	}
	_, err := wire.ParseTrailer(tail, 3, sum+1, true)
	require.ErrorIs(t, err, wire.ErrCRC)
	tail[0] = 1 // the CRC covers the pad
	_, err = wire.ParseTrailer(tail, 3, sum, true)
	require.ErrorIs(t, err, wire.ErrCRC)
	n, err := wire.ParseTrailer(tail, 3, sum, false)
	require.NoError(t, err)
	assert.Equal(t, len(tail), n)
}

func TestTheLongestULPDUIsTaken(t *testing.T) {
	// siw on a loopback device exceeds the RFC's 64768, and a receiver must take it.
	b := wire.AppendFPDU(nil, true, make([]byte, 65535))
	ulpdu, n, err := wire.ParseFPDU(b, true)
	require.NoError(t, err)
	assert.Len(t, ulpdu, 65535)
	assert.Equal(t, len(b), n)

	assert.Panics(t, func() { wire.AppendFPDU(nil, false, make([]byte, 65536)) })
	h := wire.Header{Opcode: wire.OpWrite}
	assert.Panics(t, func() { h.AppendFramed(nil, 65535) })
	assert.Panics(t, func() { h.AppendFramed(nil, -20) })
}
