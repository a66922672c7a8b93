package iwarp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A fenced request does not leave until the reads before it have their data. The test
// posts a read and a fenced request at once: without the fence the request would follow
// the read before any answer to the peer's later requests.
func TestAFencedRequestWaitsForTheReadsBeforeIt(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(8, hw.AllPrivileges)
	copy(m.buf, "answered")
	s := scripted(t, a)
	a.post(
		hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1},
		hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled | hw.WRFence},
	)
	h, body := s.next()
	require.Equal(t, wire.OpReadRequest, h.Opcode)

	s.write(read1(wire.ReadRequest{SinkSTag: 7, Size: 8, SrcSTag: m.RKey(), SrcTO: m.base}))
	h, mine := s.next()
	require.Equal(t, wire.OpReadResponse, h.Opcode, "the fence holds")
	assert.Equal(t, "answered", string(mine))

	response := wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: binary.BigEndian.Uint32(body)}
	s.write(fpdu(false, response, []byte("response")))
	h, _ = s.next()
	require.Equal(t, wire.OpSend, h.Opcode, "and gives way")
	assert.Equal(t, hw.WC{Op: hw.OpRead, Len: 8}, a.sent(0))
	assert.Equal(t, hw.WC{Op: hw.OpSend}, a.sent(1))
	assert.Equal(t, "response", string(m.buf))
}
