package wire_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// The committed seeds, in testdata/fuzz, are frames of the RFCs and of siw.

// checkError fails on an error that is neither ErrIncomplete nor a known cause.
func checkError(t *testing.T, err error) {
	t.Helper()
	var we *wire.Error
	if !errors.Is(err, wire.ErrIncomplete) && !errors.As(err, &we) {
		t.Fatalf("an error of no known kind: %v", err)
	}
}

// FuzzMPA: no octets crash the start-up frames' parsers, and a frame that parses is
// encoded and parsed again to the same values.
func FuzzMPA(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, n, err := wire.ParseMPARequest(b); err != nil {
			checkError(t, err)
		} else {
			require.LessOrEqual(t, n, len(b))
			require.Equal(t, n, wire.MPAFrameSize(b))
			again := r.Append(nil)
			require.Len(t, again, n)
			back, _, err := wire.ParseMPARequest(again)
			require.NoError(t, err)
			require.Equal(t, r, back)
			_, _, err = wire.ParseMPARequest(b[:n-1])
			require.ErrorIs(t, err, wire.ErrIncomplete)
		}
		if r, n, err := wire.ParseMPAReply(b); err != nil {
			checkError(t, err)
		} else {
			require.LessOrEqual(t, n, len(b))
			again := r.Append(nil)
			require.Len(t, again, n)
			back, _, err := wire.ParseMPAReply(again)
			require.NoError(t, err)
			require.Equal(t, r, back)
		}
	})
}

// FuzzFPDU: no octets crash the parsers of FPDUs and their headers, and an FPDU that
// parses is encoded and parsed again to the same values.
func FuzzFPDU(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, crc bool) {
		ulpdu, n, err := wire.ParseFPDU(b, crc)
		if err != nil {
			checkError(t, err)
			ulpdu = b[:min(len(b), 65535)]
		} else {
			require.LessOrEqual(t, n, len(b))
		}
		framed := wire.AppendFPDU(nil, crc, ulpdu)
		back, n, err := wire.ParseFPDU(framed, crc)
		require.NoError(t, err)
		require.Equal(t, len(framed), n)
		require.True(t, bytes.Equal(ulpdu, back))
		fuzzULPDU(t, ulpdu)
	})
}

// fuzzULPDU parses a ULPDU to its end.
func fuzzULPDU(t *testing.T, ulpdu []byte) {
	var h, again wire.Header
	n, err := h.Parse(ulpdu, len(ulpdu))
	if err != nil {
		checkError(t, err)
		return
	}
	b := h.Append(nil)
	require.Len(t, b, n)
	_, err = again.Parse(b, len(ulpdu)) // the payload need not be there
	require.NoError(t, err)
	require.Equal(t, h, again)

	payload := ulpdu[n:]
	var m interface {
		Parse([]byte) (int, error)
		Append([]byte) []byte
	}
	switch h.Opcode {
	case wire.OpReadRequest:
		m = &wire.ReadRequest{}
	case wire.OpAtomicRequest:
		m = &wire.AtomicRequest{}
	case wire.OpAtomicResponse:
		m = &wire.AtomicResponse{}
	case wire.OpTerminate:
		fuzzTerminate(t, payload, true)
		return
	default:
		return
	}
	n, err = m.Parse(payload)
	if err != nil {
		checkError(t, err)
		require.NotErrorIs(t, err, wire.ErrIncomplete, "the header has checked the length")
		return
	}
	require.Len(t, payload, n)
	first := m.Append(nil)
	_, err = m.Parse(first)
	require.NoError(t, err)
	require.Equal(t, first, m.Append(nil))
}

// FuzzTerminate: no octets crash the parser of Terminates, and its result is encoded and
// parsed again to the same values.
func FuzzTerminate(f *testing.F) {
	f.Fuzz(fuzzTerminate)
}

func fuzzTerminate(t *testing.T, b []byte, established bool) {
	term, n, err := wire.ParseTerminate(b, established)
	if err != nil {
		require.ErrorIs(t, err, wire.ErrTerminate)
		return
	}
	require.LessOrEqual(t, n, len(b))
	_ = term.Code.String()
	again := term.Append(nil)
	back, n, err := wire.ParseTerminate(again, established)
	require.NoError(t, err)
	require.Len(t, again, n)
	back.Swapped, back.Code = term.Swapped, term.Code // without flags a code may read both ways
	require.Equal(t, term, back)

	// A Terminate may quote any octets as its header.
	var h wire.Header
	if _, err := h.Parse(term.Header, int(term.Length)); err != nil {
		checkError(t, err)
	}
}

// FuzzMarkers: no octets crash the removal of markers, and markers put into any ULPDU at
// any position come out again.
func FuzzMarkers(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, pos uint64, crc bool) {
		pos &^= 3 // a stream's positions are aligned
		ulpdu, n, err := wire.ParseMarkedFPDU(nil, b, pos, crc)
		if err != nil {
			checkError(t, err)
			require.Empty(t, ulpdu)
		} else {
			require.LessOrEqual(t, n, len(b))
			require.Equal(t, n, wire.MarkedSize(pos, len(ulpdu)))
			again := wire.AppendMarkedFPDU(nil, pos, false, ulpdu)
			require.Len(t, again, n)
		}

		ulpdu = b[:min(len(b), wire.MaxULPDU)]
		marked := wire.AppendMarkedFPDU(nil, pos, crc, ulpdu)
		require.Len(t, marked, wire.MarkedSize(pos, len(ulpdu)))
		if !crc {
			require.True(t, bytes.Equal(mark(wire.AppendFPDU(nil, false, ulpdu), pos%wire.MarkerInterval), marked))
		}
		back, n, err := wire.ParseMarkedFPDU(marked[:0], marked, pos, crc)
		require.NoError(t, err)
		require.Equal(t, len(marked), n)
		require.True(t, bytes.Equal(ulpdu, back))
	})
}
