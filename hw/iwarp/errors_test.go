package iwarp

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// abuse is a message that a peer must not send, and the Terminate that answers it.
type abuse struct {
	name  string
	send  func(s *script, g *ground) []byte
	want  wire.TermCode
	recv  hw.Status // status of the receive that is posted, if it is not flushed
	quote bool      // the Terminate quotes the read request
}

// ground is the memory that the abuses try to reach.
type ground struct {
	all     *memory // all but atomics
	none    *memory // nothing but atomics
	foreign *memory // of another zone
	shifted uint32  // the key of a window on none whose offset 0 is its fifth octet
}

func read1(r wire.ReadRequest) []byte {
	return fpdu(false, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 1}, r.Append(nil))
}

// corrupted is an FPDU whose ULPDU change has changed.
func corrupted(h wire.Header, body []byte, change func(ulpdu []byte)) []byte {
	ulpdu := append(h.Append(nil), body...)
	change(ulpdu)
	return wire.AppendFPDU(nil, false, ulpdu)
}

var sendHeader = wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}

var abuses = []abuse{
	{"a ULPDU too short for any header", func(*script, *ground) []byte { return wire.AppendFPDU(nil, false, make([]byte, 13)) }, wire.TermMPAMarker, 0, false},
	{"DDP version, tagged", func(*script, *ground) []byte {
		return corrupted(wire.Header{Opcode: wire.OpWrite, Last: true}, nil, func(b []byte) { b[0] ^= 3 })
	}, wire.TermTaggedVersion, 0, false},
	{"DDP version, untagged", func(*script, *ground) []byte {
		return corrupted(sendHeader, nil, func(b []byte) { b[0] ^= 3 })
	}, wire.TermUntaggedVersion, 0, false},
	{"RDMAP version", func(*script, *ground) []byte {
		return corrupted(sendHeader, nil, func(b []byte) { b[1] ^= 0xc0 })
	}, wire.TermOperationVersion, 0, false},
	{"an unknown opcode", func(*script, *ground) []byte {
		return corrupted(sendHeader, nil, func(b []byte) { b[1] |= 0x0f })
	}, wire.TermOperationOpcode, 0, false},
	{"an extension that was not agreed on", func(*script, *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 1}, make([]byte, 8))
	}, wire.TermOperationOpcode, 0, false},
	{"a write in an untagged segment", func(*script, *ground) []byte {
		return corrupted(sendHeader, nil, func(b []byte) { b[1] = 0x40 })
	}, wire.TermOperationOpcode, 0, false},
	{"an unknown queue", func(*script, *ground) []byte {
		return corrupted(sendHeader, nil, func(b []byte) { b[9] = 7 })
	}, wire.TermUntaggedQueue, 0, false},
	{"a message out of sequence", func(*script, *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 2})
	}, wire.TermUntaggedMSN, 0, false},
	{"a message that begins in its midst", func(*script, *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1, MO: 4})
	}, wire.TermUntaggedMO, 0, false},
	{"a message with a gap", func(*script, *ground) []byte {
		return append(fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("ab")),
			fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1, MO: 4}, []byte("ef"))...)
	}, wire.TermUntaggedMO, 0, false},
	{"a message too long for its receive", func(*script, *ground) []byte {
		return fpdu(false, sendHeader, make([]byte, 65))
	}, wire.TermUntaggedTooLong, hw.StatusLocalLength, false},
	{"a message too long by its second segment", func(*script, *ground) []byte {
		return append(fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, make([]byte, 40)),
			fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1, MO: 40}, make([]byte, 40))...)
	}, wire.TermUntaggedTooLong, hw.StatusLocalLength, false},
	{"a message without a receive", func(*script, *ground) []byte {
		return append(fpdu(false, sendHeader), fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 2})...)
	}, wire.TermUntaggedNoBuffer, hw.StatusSuccess, false},
	{"a write to nowhere", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.all.RKey() ^ 0x80, TO: g.all.base}, []byte("x"))
	}, wire.TermTaggedSTag, 0, false},
	{"a write by a local key", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.all.LKey(), TO: g.all.base}, []byte("x"))
	}, wire.TermTaggedSTag, 0, false},
	{"a write out of bounds", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.all.RKey(), TO: g.all.base + 63}, []byte("xy"))
	}, wire.TermTaggedBounds, 0, false},
	{"a write that wraps", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.all.RKey(), TO: ^uint64(0)}, []byte("xy"))
	}, wire.TermTaggedWrap, 0, false},
	{"a write to another zone", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.foreign.RKey(), TO: g.foreign.base}, []byte("x"))
	}, wire.TermTaggedStream, 0, false},
	{"a write without the right to", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true, STag: g.none.RKey(), TO: g.none.base}, []byte("x"))
	}, wire.TermTaggedSTag, 0, false},
	{"a read response that nobody asked for", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: g.all.RKey(), TO: g.all.base}, []byte("x"))
	}, wire.TermTaggedSTag, 0, false},
	{"a read from nowhere", func(s *script, g *ground) []byte {
		return read1(wire.ReadRequest{SinkSTag: 77, SinkTO: 88, Size: 1, SrcSTag: g.all.RKey() + 1, SrcTO: g.all.base})
	}, wire.TermProtectionSTag, 0, true},
	{"a read out of bounds", func(s *script, g *ground) []byte {
		return read1(wire.ReadRequest{SinkSTag: 77, SinkTO: 88, Size: 65, SrcSTag: g.all.RKey(), SrcTO: g.all.base})
	}, wire.TermProtectionBounds, 0, true},
	{"a read that wraps", func(s *script, g *ground) []byte {
		return read1(wire.ReadRequest{SinkSTag: 77, SinkTO: 88, Size: 65, SrcSTag: g.all.RKey(), SrcTO: ^uint64(0)})
	}, wire.TermProtectionWrap, 0, true},
	{"a read without the right to", func(s *script, g *ground) []byte {
		return read1(wire.ReadRequest{SinkSTag: 77, SinkTO: 88, Size: 1, SrcSTag: g.none.RKey(), SrcTO: g.none.base})
	}, wire.TermProtectionAccess, 0, true},
	{"a read from another zone", func(s *script, g *ground) []byte {
		return read1(wire.ReadRequest{SinkSTag: 77, SinkTO: 88, Size: 1, SrcSTag: g.foreign.RKey(), SrcTO: g.foreign.base})
	}, wire.TermProtectionStream, 0, true},
	{"a read out of sequence", func(s *script, g *ground) []byte {
		r := wire.ReadRequest{SinkSTag: 77}
		return fpdu(false, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 2}, r.Append(nil))
	}, wire.TermUntaggedMSN, 0, false},
	{"an invalidation of nothing", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpSendInvalidate, Last: true, MSN: 1, STag: 0x123456})
	}, wire.TermProtectionInvalidate, hw.StatusBindFailed, false},
	{"an invalidation of what is not the peer's", func(s *script, g *ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpSendInvalidate, Last: true, MSN: 1, STag: g.foreign.RKey()})
	}, wire.TermProtectionInvalidate, hw.StatusBindFailed, false},
}

func newGround(n *node) *ground {
	zone, err := n.dev.NewZone()
	require.NoError(n.tb, err)
	n.tb.Cleanup(func() { require.NoError(n.tb, zone.Close()) })
	other := &node{tb: n.tb, dev: n.dev, zone: zone}
	g := &ground{
		all:     n.memory(64, hw.AllPrivileges),
		none:    n.memory(64, hw.LocalRead|hw.LocalWrite|hw.RemoteAtomic),
		foreign: other.memory(64, hw.AllPrivileges),
	}
	g.shifted = n.shifted(g.none)
	return g
}

// shifted is the key of a zero-based window that begins four octets into m, bound
// by a connection of its own.
func (n *node) shifted(m *memory) uint32 {
	n.tb.Helper()
	a, b := n.peer(), n.peer()
	join(a, b)
	w := n.window(nil)
	key := w.NextKey()
	a.post(hw.SendWR{Op: hw.OpBind, Flags: hw.WRSignaled, Bind: &hw.Bind{
		Window: w, MR: m.MR, Addr: m.base + 4, Len: uint64(len(m.buf)) - 4, Priv: hw.RemoteAtomic, Key: key, ZeroBased: true,
	}})
	require.Equal(n.tb, hw.WC{Op: hw.OpBind}, a.sent(0))
	return key
}

func TestEachAbuseIsAnsweredWithItsTerminate(t *testing.T) {
	for _, c := range abuses {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			g := newGround(n)
			b, m := n.peer(), n.memory(64, hw.LocalWrite)
			b.recv(m.sge(0, 64))
			s, _ := accepted(t, b, plain())
			s.write(c.send(s, g))
			term := s.terminate()
			assert.Equal(t, c.want, term.Code)
			assert.Equal(t, c.quote, term.HasRead)
			if c.quote {
				assert.Equal(t, uint32(77), term.Read.SinkSTag)
			}
			b.awaitDown()
			assert.Equal(t, hw.ReasonBroken, b.down)
			want := c.recv
			if c.recv == 0 && c.want != wire.TermUntaggedNoBuffer {
				want = hw.StatusFlushed
			}
			assert.Equal(t, want, b.received(0).Status)
			assert.Equal(t, make([]byte, 64), g.all.buf)
		})
	}
}

func TestABadCRCIsAnsweredWithItsTerminate(t *testing.T) {
	rtr := fpdu(true, wire.Header{Opcode: wire.OpWrite, Last: true})
	for _, n := range []int{0, 100, 30000} {
		node := newNode(t, New(Config{}), map[string]string{"linger": "10s"})
		b, m := node.peer(), node.memory(30000, hw.LocalWrite)
		b.recv(m.sge(0, 30000))
		s, _ := accepted(t, b, plain())
		f := fpdu(true, sendHeader, bytes.Repeat([]byte{1}, n))
		f[len(f)-1] ^= 1
		s.write(append(rtr[:len(rtr):len(rtr)], f...))
		assert.Equal(t, wire.TermMPACRC, s.terminate().Code)
		b.awaitDown()
		assert.Equal(t, hw.ReasonBroken, b.down)
		assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
		assert.Equal(t, make([]byte, 30000), m.buf, "nothing was placed")
	}
}

// The accepting end reports the connection at the first FPDU. If the first FPDU is
// invalid, it reports that the attempt failed.
func TestAnInvalidFirstFPDUIsAnsweredAndRefused(t *testing.T) {
	bad := wire.AppendFPDU(nil, false, make([]byte, 5))
	flipped := fpdu(true, sendHeader)
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct {
		name   string
		params map[string]string
		send   []byte
		want   wire.TermCode
	}{
		{"CRC", map[string]string{"linger": "10s"}, flipped, wire.TermMPACRC},
		{"marker", map[string]string{"linger": "10s", "crc": "false", "markers": "true"}, append([]byte{0, 0, 0, 4}, bad...), wire.TermMPAMarker},
		{"length", map[string]string{"linger": "10s", "crc": "false"}, bad, wire.TermMPAMarker},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newNode(t, New(Config{}), c.params).peer()
			b.recv()
			req := plain()
			req.Data.PeerToPeer, req.Data.WriteRTR = true, true
			s, _ := accepted(t, b, req)
			s.write(c.send)
			assert.Equal(t, c.want, s.terminate().Code)
			if c.name == "length" { // it was an FPDU, with an invalid header
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
				return
			}
			b.await("refusal", func() bool { return b.refused != 0 })
			assert.Equal(t, hw.ReasonRejected, b.refused)
			assert.Nil(t, b.info)
		})
	}
}

func TestMoreReadsThanAgreedBreakTheConnection(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b, m := n.peer(), n.memory(16<<20, hw.RemoteRead)
	s, reply := accepted(t, b, plain())
	require.Equal(t, uint16(4), reply.Data.IRD)
	for i := range 5 {
		r := wire.ReadRequest{SinkSTag: 1, Size: 16 << 20, SrcSTag: m.RKey(), SrcTO: m.base}
		s.write(fpdu(false, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: uint32(i + 1)}, r.Append(nil)))
	}
	assert.Equal(t, wire.TermOperationStream, s.terminate().Code, "behind the responses that were due")
	b.awaitDown()
}

func TestTheConnectionEndsAsItsStreamDoes(t *testing.T) {
	for _, c := range []struct {
		name string
		send []byte
		rst  bool
		want hw.Reason
	}{
		{"between two FPDUs", nil, false, hw.ReasonPeer},
		{"in the middle of one", fpdu(false, sendHeader, make([]byte, 10))[:20], false, hw.ReasonBroken},
		{"in the middle of a long one", fpdu(false, sendHeader, make([]byte, 30000))[:15000], false, hw.ReasonBroken},
		{"in the middle of a message", fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, make([]byte, 10)), false, hw.ReasonBroken},
		{"with a reset", nil, true, hw.ReasonBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			b, m := n.peer(), n.memory(30000, hw.LocalWrite)
			b.recv(m.sge(0, 30000))
			s, _ := accepted(t, b, plain())
			s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
			b.awaitUp()
			s.write(c.send)
			if c.rst {
				require.NoError(t, s.conn.(*net.TCPConn).SetLinger(0))
			}
			require.NoError(t, s.conn.Close())
			b.awaitDown()
			assert.Equal(t, c.want, b.down)
			assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
		})
	}
}

func TestATerminateGivesAReadItsStatus(t *testing.T) {
	rfc := func(code wire.TermCode) func(ulpdu []byte) []byte {
		return func(ulpdu []byte) []byte { return terminate(code, ulpdu, len(ulpdu)) }
	}
	raw := func(b ...byte) func([]byte) []byte {
		return func([]byte) []byte {
			h := wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}
			return append(h.Append(nil), b...)
		}
	}
	for _, c := range []struct {
		name string
		term func(read []byte) []byte
		want hw.Status
	}{
		{"invalid STag", rfc(wire.TermProtectionSTag), hw.StatusRemoteAccess},
		{"bounds", rfc(wire.TermProtectionBounds), hw.StatusRemoteAccess},
		{"access", rfc(wire.TermProtectionAccess), hw.StatusRemoteAccess},
		{"too many", rfc(wire.TermOperationStream), hw.StatusRemoteResponder},
		{"local error", rfc(wire.TermRDMAPLocal), hw.StatusFlushed},
		{"CRC", rfc(wire.TermMPACRC), hw.StatusFlushed},
		{"siw: bad opcode", raw(0x20, 0x06, 0, 0), hw.StatusRemoteResponder},
		{"siw: bad MSN", raw(0x21, 0x03, 0x03, 0x00), hw.StatusFlushed},
		{"malformed", raw(0x01), hw.StatusFlushed},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			a, m := n.peer(), n.memory(64, hw.AllPrivileges)
			s := scripted(t, a)
			for range 2 {
				a.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 5, RemoteAddr: 6})
			}
			first, body := s.next()
			var r wire.ReadRequest
			_, err := r.Parse(body)
			require.NoError(t, err)
			assert.Equal(t, wire.ReadRequest{SinkSTag: r.SinkSTag, SrcSTag: 5, SrcTO: 6, Size: 8}, r)
			s.write(wire.AppendFPDU(nil, false, c.term(append(first.Append(nil), body...))))
			a.awaitDown()
			assert.Equal(t, hw.ReasonBroken, a.down)
			assert.Equal(t, c.want, a.sent(0).Status)
			assert.Equal(t, hw.StatusFlushed, a.sent(1).Status)
		})
	}
}

func TestAReadResponseMustBeWhatWasAskedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		resp func(stag uint32) []byte
		want hw.Status
	}{
		{"another sink", func(stag uint32) []byte {
			return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: stag + 1}, make([]byte, 8))
		}, hw.StatusBadResponse},
		{"another offset", func(stag uint32) []byte {
			return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: stag, TO: 1}, make([]byte, 8))
		}, hw.StatusBadResponse},
		{"too long", func(stag uint32) []byte {
			return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: stag}, make([]byte, 9))
		}, hw.StatusBadResponse},
		{"too short", func(stag uint32) []byte {
			return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: stag}, make([]byte, 7))
		}, hw.StatusBadResponse},
		{"without end", func(stag uint32) []byte {
			return fpdu(false, wire.Header{Opcode: wire.OpReadResponse, STag: stag}, make([]byte, 8))
		}, hw.StatusBadResponse},
		{"in two pieces", func(stag uint32) []byte {
			return append(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, STag: stag}, make([]byte, 4)),
				fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: stag, TO: 4}, make([]byte, 4))...)
		}, hw.StatusSuccess},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			a, m := n.peer(), n.memory(8, hw.AllPrivileges)
			s := scripted(t, a)
			a.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 3), m.sge(3, 5)}})
			_, body := s.next()
			var r wire.ReadRequest
			_, err := r.Parse(body)
			require.NoError(t, err)
			s.write(c.resp(r.SinkSTag))
			assert.Equal(t, c.want, a.sent(0).Status)
		})
	}
}

// The key of a single segment is looked up as the first octets are placed; those of
// several segments, and of an empty message's receive, before.
func TestAReceiveWithADeadKeyFailsWhateverComes(t *testing.T) {
	for _, segments := range []int{1, 2} {
		for _, octets := range []int{0, 8} {
			a, b := pair(t, nil)
			in, out := b.memory(16, hw.LocalWrite), a.memory(16, hw.LocalRead)
			sgl := []hw.SGE{in.sge(0, 8), in.sge(8, 8)}[2-segments:]
			sgl[segments-1].LKey ^= 1
			b.recv(sgl...)
			a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{out.sge(0, octets)}})
			assert.Equal(t, hw.StatusLocalProtection, b.received(0).Status, "%d segments, %d octets", segments, octets)
		}
	}
}
