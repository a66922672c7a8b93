package iwarp

import (
	"crypto/rand"
	"maps"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// The sender appends a send of few octets in another way than a longer one, or one whose
// octets lie in more than one segment. The peer sees no difference.
func TestASendOfFewOctetsIsOneFPDU(t *testing.T) {
	for _, crc := range []bool{false, true} {
		t.Run("crc="+strconv.FormatBool(crc), func(t *testing.T) {
			params := maps.Clone(noCRC)
			params["crc"] = strconv.FormatBool(crc)
			n := newNode(t, New(Config{}), params)
			a := n.peer()
			_, s := answering(t, a, hw.ConnectConfig{})
			reply := obliging(s.request())
			reply.CRC, s.crc = crc, crc
			s.write(reply.Append(nil))
			a.awaitUp()

			m := n.memory(2*inlined, hw.LocalRead)
			_, _ = rand.Read(m.buf)
			for i, sgl := range [][]hw.SGE{
				nil,
				{m.sge(0, 1)},
				{m.sge(0, 1), m.sge(1, 6)},
				{m.sge(0, 64)},
				{m.sge(0, inlined-1)},
				{m.sge(0, inlined)},
				{m.sge(0, inlined), m.sge(0, 0)},
				{m.sge(0, inlined+1)},
				{m.sge(0, 2*inlined)},
			} {
				a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: sgl})
				h, body := s.next()
				require.Equal(t, wire.Header{Opcode: wire.OpSend, Last: true, MSN: uint32(i + 1)}, h)
				require.Equal(t, string(m.buf[:soft.Total(sgl)]), string(body))
				assert.Equal(t, hw.WC{Op: hw.OpSend, Len: uint32(soft.Total(sgl))}, a.sent(i))
			}
			a.post(hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSolicited, Imm: 7, SGL: []hw.SGE{m.sge(0, 3)}})
			h, body := s.next()
			assert.Equal(t, wire.Header{Opcode: wire.OpSendSEInvalidate, Last: true, MSN: 10, STag: 7}, h)
			assert.Equal(t, string(m.buf[:3]), string(body))
		})
	}
}
