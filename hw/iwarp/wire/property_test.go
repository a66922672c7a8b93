package wire_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw/iwarp/wire"
)

// genPrivate draws private data of any legal length.
func genPrivate(limit int) *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.Byte(), 0, limit)
}

// genEnhanced draws a block as Parse returns it: neither C nor D without A.
func genEnhanced(t *rapid.T) (e wire.EnhancedData) {
	e.PeerToPeer = rapid.Bool().Draw(t, "A")
	e.SendRTR = rapid.Bool().Draw(t, "B")
	if e.PeerToPeer {
		e.WriteRTR = rapid.Bool().Draw(t, "C")
		e.ReadRTR = rapid.Bool().Draw(t, "D")
	}
	e.IRD = rapid.Uint16Range(0, wire.NotNegotiated).Draw(t, "IRD")
	e.ORD = rapid.Uint16Range(0, wire.NotNegotiated).Draw(t, "ORD")
	return e
}

func TestMPAFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := wire.MPARequest{
			Revision: rapid.Uint8Range(1, 2).Draw(t, "revision"),
			Markers:  rapid.Bool().Draw(t, "M"),
			CRC:      rapid.Bool().Draw(t, "C"),
			BigFPDU:  rapid.Bool().Draw(t, "big"),
		}
		limit := wire.MaxPrivate
		if r.Revision == 2 && rapid.Bool().Draw(t, "S") {
			r.Enhanced, r.Data = true, genEnhanced(t)
			limit = wire.MaxPrivateEnhanced
		}
		r.Private = genPrivate(limit).Draw(t, "private")
		b := r.Append(nil)
		got, n, err := wire.ParseMPARequest(append(b, 1))
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, r, got)
		require.Equal(t, len(b), wire.MPAFrameSize(b))

		p := wire.MPAReply{
			Revision: r.Revision, Markers: r.Markers, CRC: r.CRC, BigFPDU: r.BigFPDU,
			Reject: rapid.Bool().Draw(t, "R"), Enhanced: r.Enhanced, Data: r.Data, Private: r.Private,
		}
		back, n, err := wire.ParseMPAReply(p.Append(nil))
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, p, back)
		_, _, err = wire.ParseMPARequest(p.Append(nil))
		require.ErrorIs(t, err, wire.ErrMPARole)
	})
}

// genHeader draws a header and the length of a ULPDU that may begin with it.
func genHeader(t *rapid.T) (h wire.Header, length int) {
	h.Opcode = rapid.Custom(func(t *rapid.T) wire.Opcode {
		return wire.Opcode(rapid.IntRange(0, 11).Draw(t, "opcode"))
	}).Draw(t, "op")
	h.Last = true
	payload := rapid.IntRange(0, 1500).Draw(t, "payload")
	switch h.Opcode {
	case wire.OpReadRequest:
		payload = wire.ReadRequestSize
	case wire.OpAtomicRequest:
		payload = wire.AtomicRequestSize
	case wire.OpAtomicResponse:
		payload = wire.AtomicResponseSize
	case wire.OpImmediate, wire.OpImmediateSE:
		payload = wire.ImmediateSize
	case wire.OpTerminate:
		payload += wire.TerminateControlSize
	default:
		h.Last = rapid.Bool().Draw(t, "last")
	}
	switch {
	case h.Opcode.Tagged():
		h.STag = rapid.Uint32().Draw(t, "STag")
		h.TO = rapid.Uint64Max(1<<64-2000).Draw(t, "TO")
	default:
		h.MSN = rapid.Uint32().Draw(t, "MSN")
		if h.Opcode.Invalidates() {
			h.STag = rapid.Uint32().Draw(t, "STag")
		}
		if h.Opcode.Send() {
			h.MO = rapid.Uint32Max(1<<32-2000).Draw(t, "MO")
		}
	}
	return h, h.Size() + payload
}

func TestHeadersRoundTrip(t *testing.T) {
	var got wire.Header // reused
	rapid.Check(t, func(t *rapid.T) {
		h, length := genHeader(t)
		b := h.Append(nil)
		n, err := got.Parse(b, length)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, h, got)
		require.Equal(t, b, h.AppendFramed(nil, length-n)[wire.FPDULengthSize:])
	})
}

func TestRDMAPHeadersRoundTrip(t *testing.T) {
	var r wire.ReadRequest // reused
	var a wire.AtomicRequest
	var s wire.AtomicResponse
	rapid.Check(t, func(t *rapid.T) {
		u32, u64 := rapid.Uint32(), rapid.Uint64()
		read := wire.ReadRequest{
			SinkTO: u64.Draw(t, "sinkTO"), SrcTO: rapid.Uint64Max(1<<63).Draw(t, "srcTO"),
			SinkSTag: u32.Draw(t, "sink"), SrcSTag: u32.Draw(t, "src"), Size: u32.Draw(t, "size"),
		}
		n, err := r.Parse(read.Append(nil))
		require.NoError(t, err)
		require.Equal(t, wire.ReadRequestSize, n)
		require.Equal(t, read, r)

		atomic := wire.AtomicRequest{
			Op: wire.CmpSwap, TO: rapid.Uint64Max(math.MaxUint64-8).Draw(t, "TO"), Data: u64.Draw(t, "data"), Mask: u64.Draw(t, "mask"),
			Compare: u64.Draw(t, "compare"), CompareMask: u64.Draw(t, "cmask"),
			ID: u32.Draw(t, "id"), STag: u32.Draw(t, "STag"),
		}
		n, err = a.Parse(atomic.Append(nil))
		require.NoError(t, err)
		require.Equal(t, wire.AtomicRequestSize, n)
		require.Equal(t, atomic, a)

		resp := wire.AtomicResponse{ID: atomic.ID, Original: atomic.Data}
		n, err = s.Parse(resp.Append(nil))
		require.NoError(t, err)
		require.Equal(t, wire.AtomicResponseSize, n)
		require.Equal(t, resp, s)
	})
}

// However a stream of FPDUs is cut and framed, the same ULPDUs come out of it.
func TestStreamsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		crc := rapid.Bool().Draw(t, "crc")
		markers := rapid.Bool().Draw(t, "markers")
		lengths := rapid.SliceOfN(rapid.IntRange(0, 1600), 1, 12).Draw(t, "lengths")
		var ulpdus [][]byte
		var stream []byte
		for i, length := range lengths {
			u := bytes.Repeat([]byte{byte(i + 1)}, length)
			cut := rapid.IntRange(0, length).Draw(t, "cut")
			pos := uint64(len(stream))
			if markers {
				stream = wire.AppendMarkedFPDU(stream, pos, crc, u[:cut], u[cut:])
				require.Equal(t, len(stream)-int(pos), wire.MarkedSize(pos, length))
			} else {
				stream = wire.AppendFPDU(stream, crc, u[:cut], u[cut:])
			}
			ulpdus = append(ulpdus, u)
		}
		require.Zero(t, len(stream)%4)

		have, pos := 0, 0
		var scratch []byte
		for len(ulpdus) > 0 {
			var got []byte
			var n int
			var err error
			if markers {
				got, n, err = wire.ParseMarkedFPDU(scratch[:0], stream[pos:have], uint64(pos), crc)
				scratch = got
			} else {
				got, n, err = wire.ParseFPDU(stream[pos:have], crc)
			}
			if err != nil {
				require.ErrorIs(t, err, wire.ErrIncomplete)
				require.Less(t, have, len(stream))
				have += rapid.IntRange(1, len(stream)-have).Draw(t, "arrives")
				continue
			}
			require.True(t, bytes.Equal(ulpdus[0], got))
			ulpdus, pos = ulpdus[1:], pos+n
		}
		require.Equal(t, len(stream), pos)
	})
}

// genTerminate draws a Terminate with headers that NewTerminate or a peer may quote.
func genTerminate(t *rapid.T) wire.Terminate {
	term := wire.Terminate{Code: rapid.SampledFrom(termRows).Draw(t, "row").code}
	if rapid.Bool().Draw(t, "M") {
		term.LengthValid, term.Length = true, rapid.Uint16().Draw(t, "length")
	}
	if rapid.Bool().Draw(t, "D") {
		h, _ := genHeader(t)
		term.Header = h.Append(nil)
	}
	if rapid.Bool().Draw(t, "R") {
		term.HasRead = true
		term.Read = wire.ReadRequest{SinkSTag: rapid.Uint32().Draw(t, "sink"), Size: rapid.Uint32().Draw(t, "size")}
	}
	return term
}

func TestTerminatesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := genTerminate(t)
		// A side sends MPA's codes during start-up, RDMAP's after it.
		b := term.Append(nil)
		got, n, err := wire.ParseTerminate(b, term.Code.Layer() != wire.LayerLLP)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, term, got)
	})
}

// swapTerminate makes siw's form of the RFC's.
func swapTerminate(b []byte) []byte {
	b = bytes.Clone(b)
	b[0] = b[0]<<4 | b[0]>>4
	b[2] = b[2]>>7&1 | b[2]>>5&2 | b[2]>>3&4
	return b
}

func TestSwappedTerminatesReadTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := genTerminate(t)
		b := swapTerminate(term.Append(nil))
		got, n, err := wire.ParseTerminate(b, term.Code.Layer() != wire.LayerLLP)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		if b[2] == 0 && !got.Swapped {
			// The forms can't be told apart: the first octet is possible in both, and
			// siw does not send this code without flags.
			require.NotEqual(t, wire.LayerLLP, term.Code.Layer())
			require.NotEqual(t, wire.TermOperationOpcode, term.Code)
			require.NotEqual(t, wire.TermOperationVersion, term.Code)
			require.NotEqual(t, wire.TermUntaggedVersion, term.Code)
			return
		}
		term.Swapped = true
		require.Equal(t, term, got)
	})
}
