package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp/wire"
)

// rpingPort is the port of rping's server.
const rpingPort = 7174

// rpingStreams returns the two streams of a capture: rping over siw, three rounds of 64
// octets, without CRC.
func rpingStreams(t testing.TB) (client, server []byte) {
	t.Helper()
	streams := readStreams(t, "testdata/siw-rping.pcapng")
	require.Len(t, streams, 2)
	for f, b := range streams {
		if f.dst == rpingPort {
			client = b
		} else {
			server = b
		}
	}
	require.NotEmpty(t, client)
	require.NotEmpty(t, server)
	return client, server
}

// reencodeFPDU parses the FPDU that begins b down to its last field and encodes it again.
func reencodeFPDU(t testing.TB, b []byte) (h wire.Header, payload, again []byte) {
	t.Helper()
	ulpdu, n, err := wire.ParseFPDU(b, false)
	require.NoError(t, err)
	hn, err := h.Parse(ulpdu, len(ulpdu))
	require.NoError(t, err)
	payload = ulpdu[hn:]
	again = h.AppendFramed(nil, len(payload))
	if h.Opcode == wire.OpReadRequest {
		var r wire.ReadRequest
		_, err = r.Parse(payload)
		require.NoError(t, err)
		again = r.Append(again)
	} else {
		again = append(again, payload...)
	}
	again = wire.SealFPDU(again, 0, false)
	require.Len(t, again, n)
	return h, payload, again
}

func TestEveryFrameOfTheCaptureIsReencodedToTheSameOctets(t *testing.T) {
	client, server := rpingStreams(t)

	req, n, err := wire.ParseMPARequest(client)
	require.NoError(t, err)
	assert.Equal(t, wire.EnhancedData{IRD: 1, ORD: 1}, req.Data)
	rep, m, err := wire.ParseMPAReply(server)
	require.NoError(t, err)
	assert.False(t, rep.Reject)

	for _, row := range []struct {
		name   string
		start  []byte
		stream []byte
		want   map[wire.Opcode]int
	}{
		{
			"client", req.Append(nil), client[n:],
			map[wire.Opcode]int{wire.OpSend: 6, wire.OpReadResponse: 3},
		},
		{
			"server", rep.Append(nil), server[m:],
			map[wire.Opcode]int{wire.OpSend: 6, wire.OpReadRequest: 3, wire.OpWrite: 3},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := map[wire.Opcode]int{}
			var again []byte
			msn := map[wire.Queue]uint32{}
			for rest := row.stream; len(rest) > 0; {
				h, payload, b := reencodeFPDU(t, rest)
				got[h.Opcode]++
				again = append(again, b...)
				rest = rest[len(b):]
				assert.True(t, h.Last)
				if h.Opcode.Tagged() {
					assert.Contains(t, string(payload), "rdma-ping-")
				} else {
					msn[h.Opcode.Queue()]++
					assert.Equal(t, msn[h.Opcode.Queue()], h.MSN)
				}
			}
			assert.Equal(t, row.want, got)
			assert.Equal(t, row.stream, again)
		})
	}
	assert.Equal(t, client[:n], req.Append(nil))
	assert.Equal(t, server[:m], rep.Append(nil))
}

func TestTheReadsOfTheCaptureAreAnsweredWithTheirSinks(t *testing.T) {
	client, server := rpingStreams(t)
	var asked []wire.ReadRequest
	for rest := server[24:]; len(rest) > 0; {
		h, payload, b := reencodeFPDU(t, rest)
		if h.Opcode == wire.OpReadRequest {
			var r wire.ReadRequest
			_, err := r.Parse(payload)
			require.NoError(t, err)
			asked = append(asked, r)
		}
		rest = rest[len(b):]
	}
	require.Len(t, asked, 3)
	for rest := client[24:]; len(rest) > 0; {
		h, payload, b := reencodeFPDU(t, rest)
		if h.Opcode == wire.OpReadResponse {
			assert.Equal(t, asked[0].SinkSTag, h.STag)
			assert.Equal(t, asked[0].SinkTO, h.TO)
			assert.Len(t, payload, int(asked[0].Size))
			asked = asked[1:]
		}
		rest = rest[len(b):]
	}
	assert.Empty(t, asked)
}

// The capture again as it would be with CRCs and with markers: the contents of the frames
// do not change.
func TestTheCaptureSurvivesCRCsAndMarkers(t *testing.T) {
	_, server := rpingStreams(t)
	var ulpdus [][]byte
	for rest := server[24:]; len(rest) > 0; {
		ulpdu, n, err := wire.ParseFPDU(rest, false)
		require.NoError(t, err)
		ulpdus = append(ulpdus, ulpdu)
		rest = rest[n:]
	}
	var stream []byte
	for _, u := range ulpdus {
		stream = wire.AppendMarkedFPDU(stream, uint64(len(stream)), true, u)
	}
	assert.Greater(t, len(stream), wire.MarkerInterval)
	pos := 0
	for _, u := range ulpdus {
		got, n, err := wire.ParseMarkedFPDU(nil, stream[pos:], uint64(pos), true)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(u, got))
		pos += n
	}
	assert.Equal(t, len(stream), pos)
}
