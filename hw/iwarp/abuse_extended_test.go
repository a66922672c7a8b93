package iwarp

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// ours is a request as this package makes it, so that the ends agree on RFC 7306.
func ours() wire.MPARequest {
	req := plain()
	req.BigFPDU, req.Data.SendRTR = true, true
	return req
}

var (
	rtrFPDU         = fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true})
	immediateHeader = wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 1}
)

func atomic1(a wire.AtomicRequest) []byte {
	return fpdu(false, wire.Header{Opcode: wire.OpAtomicRequest, Last: true, MSN: 1}, a.Append(nil))
}

var extendedAbuses = []struct {
	name string
	send func(g *ground) []byte
	want wire.TermCode
	recv hw.Status // status of the receive that is posted
}{
	{"an atomic on nothing", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.all.RKey() ^ 0x80, TO: g.all.base})
	}, wire.TermProtectionSTag, hw.StatusFlushed},
	{"an atomic by a local key", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.all.LKey(), TO: g.all.base})
	}, wire.TermProtectionSTag, hw.StatusFlushed},
	{"an atomic without the right to", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.all.RKey(), TO: g.all.base})
	}, wire.TermProtectionAccess, hw.StatusFlushed},
	{"an atomic in another zone", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.foreign.RKey(), TO: g.foreign.base})
	}, wire.TermProtectionStream, hw.StatusFlushed},
	{"an atomic out of bounds", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.none.RKey(), TO: g.none.base + 57})
	}, wire.TermProtectionBounds, hw.StatusFlushed},
	{"an atomic that wraps", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.none.RKey(), TO: ^uint64(0)})
	}, wire.TermProtectionWrap, hw.StatusFlushed},
	{"an atomic that is not aligned", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.none.RKey(), TO: g.none.base + 4})
	}, wire.TermOperationStream, hw.StatusFlushed},
	{"an atomic that is not aligned in memory, though its offset is", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{STag: g.shifted, TO: 8, Data: 1})
	}, wire.TermOperationStream, hw.StatusFlushed},
	{"an unknown atomic", func(g *ground) []byte {
		return atomic1(wire.AtomicRequest{Op: 7, STag: g.none.RKey(), TO: g.none.base})
	}, wire.TermOperationOpcode, hw.StatusFlushed},
	{"an atomic out of sequence", func(g *ground) []byte {
		a := wire.AtomicRequest{STag: g.none.RKey(), TO: g.none.base}
		return fpdu(false, wire.Header{Opcode: wire.OpAtomicRequest, Last: true, MSN: 2}, a.Append(nil))
	}, wire.TermUntaggedMSN, hw.StatusFlushed},
	{"an atomic's response that nobody asked for", func(*ground) []byte {
		a := wire.AtomicResponse{ID: 1}
		return fpdu(false, wire.Header{Opcode: wire.OpAtomicResponse, Last: true, MSN: 1}, a.Append(nil))
	}, wire.TermOperationStream, hw.StatusFlushed},
	{"an atomic's response out of sequence", func(*ground) []byte {
		a := wire.AtomicResponse{ID: 1}
		return fpdu(false, wire.Header{Opcode: wire.OpAtomicResponse, Last: true, MSN: 2}, a.Append(nil))
	}, wire.TermUntaggedMSN, hw.StatusFlushed},
	{"immediate data that is too short", func(*ground) []byte {
		return fpdu(false, immediateHeader, make([]byte, 7))
	}, wire.TermMPAMarker, hw.StatusFlushed},
	{"immediate data out of sequence", func(*ground) []byte {
		return fpdu(false, wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 2}, make([]byte, 8))
	}, wire.TermUntaggedMSN, hw.StatusFlushed},
	{"immediate data in the middle of a message", func(*ground) []byte {
		return append(fpdu(false, wire.Header{Opcode: wire.OpSend, MSN: 1}, []byte("half")),
			fpdu(false, immediateHeader, make([]byte, 8))...)
	}, wire.TermUntaggedMSN, hw.StatusFlushed},
	{"immediate data without a receive", func(*ground) []byte {
		return append(fpdu(false, sendHeader),
			fpdu(false, wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: 2}, make([]byte, 8))...)
	}, wire.TermUntaggedNoBuffer, hw.StatusSuccess},
}

func TestEachAbuseOfTheExtensionsIsAnsweredWithItsTerminate(t *testing.T) {
	for _, c := range extendedAbuses {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			g := newGround(n)
			b, m := n.peer(), n.memory(64, hw.LocalWrite)
			b.recv(m.sge(0, 64))
			s, reply := accepted(t, b, ours())
			require.True(t, reply.Data.SendRTR, "agreed on")
			s.write(append(rtrFPDU[:len(rtrFPDU):len(rtrFPDU)], c.send(g)...))
			assert.Equal(t, c.want, s.terminate().Code)
			b.awaitDown()
			assert.Equal(t, hw.ReasonBroken, b.down)
			assert.Equal(t, c.recv, b.received(0).Status)
			assert.Equal(t, make([]byte, 64), g.all.buf)
			assert.Equal(t, make([]byte, 64), g.none.buf)
		})
	}
}

// The window's offsets begin in the middle of a word, so an aligned address has an
// offset that is not.
func TestAnAtomicIsAlignedWhenItsAddressIs(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	g := newGround(n)
	b := n.peer()
	s, _ := accepted(t, b, ours())
	s.write(append(rtrFPDU[:len(rtrFPDU):len(rtrFPDU)], atomic1(wire.AtomicRequest{STag: g.shifted, TO: 4, Data: 5})...))
	h, _ := s.next()
	require.Equal(t, wire.OpAtomicResponse, h.Opcode)
	assert.Equal(t, uint64(5), binary.NativeEndian.Uint64(g.none.buf[8:]))
	_ = s.conn.Close()
	b.awaitDown()
}

// A peer may state any length of its write in its immediate data. The receiver's
// completion has the length that the write has placed.
func TestTheLengthOfImmediateDataIsWhatWasPlaced(t *testing.T) {
	write := func(m *memory, last bool, off, n int) []byte {
		h := wire.Header{Opcode: wire.OpWrite, Last: last, STag: m.RKey(), TO: m.base + uint64(off)}
		return fpdu(false, h, make([]byte, n))
	}
	nothing := func(*memory) []byte { return rtrFPDU }
	for _, c := range []struct {
		name string
		send func(m *memory) []byte
		want uint32
	}{
		{"no write", func(*memory) []byte { return nil }, 0},
		{"a write of nothing", nothing, 0},
		{"a write", func(m *memory) []byte { return write(m, true, 0, 24) }, 24},
		{"a write in two segments", func(m *memory) []byte {
			return append(write(m, false, 0, 24), write(m, true, 24, 16)...)
		}, 40},
		{"a write behind another", func(m *memory) []byte {
			return append(write(m, true, 0, 24), write(m, true, 24, 16)...)
		}, 16},
		{"a write of nothing behind another", func(m *memory) []byte {
			return append(write(m, true, 0, 24), rtrFPDU...)
		}, 0},
		{"a write before another message", func(m *memory) []byte {
			return append(write(m, true, 0, 24), fpdu(false, immediateHeader, make([]byte, 8))...)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			b, m := n.peer(), n.memory(64, hw.RemoteWrite)
			b.recv()
			b.recv()
			s, _ := accepted(t, b, ours())
			s.write(rtrFPDU)
			s.write(c.send(m))
			last := uint32(1)
			if c.name == "a write before another message" {
				last++
			}
			h := wire.Header{Opcode: wire.OpImmediate, Last: true, MSN: last}
			s.write(fpdu(false, h, []byte{0, 0, 0xca, 0xfe, 0xff, 0xff, 0xff, 0xf0}))
			want := hw.WC{Op: hw.OpRecvImm, Flags: hw.WCImm, Imm: 0xcafe, Len: c.want}
			assert.Equal(t, want, b.received(int(last-1)))
			_ = s.conn.Close()
			b.awaitDown()
		})
	}
}

// A peer that takes no answers may have only as many requests outstanding as was agreed.
func TestMoreAtomicsThanAgreedBreakTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b, m := n.peer(), n.memory(8, hw.RemoteAtomic)
		s := acceptedByPipe(t, ways, b, ours())
		s.write(rtrFPDU)
		b.awaitUp()
		const agreed = 4
		for i := range uint32(agreed + 2) { // the first answer is being written, and no longer outstanding
			a := wire.AtomicRequest{STag: m.RKey(), TO: m.base, Data: 1}
			s.write(fpdu(false, wire.Header{Opcode: wire.OpAtomicRequest, Last: true, MSN: i + 1}, a.Append(nil)))
			synctest.Wait()
		}
		for range agreed + 1 {
			h, _ := s.next()
			require.Equal(t, wire.OpAtomicResponse, h.Opcode)
		}
		assert.Equal(t, wire.TermOperationStream, s.terminate().Code)
		b.awaitDown()
	})
}

var markedRTR = wire.AppendMarkedFPDU(nil, 0, false, (&wire.Header{Opcode: wire.OpWrite, Last: true}).Append(nil))

func TestABadMarkerIsAnsweredWithItsTerminate(t *testing.T) {
	n := newNode(t, New(Config{}), map[string]string{"markers": "true", "crc": "false", "linger": "10s"})
	b, m := n.peer(), n.memory(2000, hw.LocalWrite)
	b.recv(m.sge(0, 2000))
	s, reply := accepted(t, b, plain())
	require.True(t, reply.Markers)
	f := wire.AppendMarkedFPDU(markedRTR, uint64(len(markedRTR)), false, sendHeader.Append(nil), make([]byte, 1500))
	f[wire.MarkerInterval+3] ^= 4
	s.write(f)
	assert.Equal(t, wire.TermMPAMarker, s.terminate().Code)
	b.awaitDown()
	assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
}

// The peer's Terminate fails a request that has not left this end. Requests that have
// left have completed already.
func TestATerminateGivesAnUnsentRequestItsStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		op   hw.Op
		code []byte
		want hw.Status
	}{
		{"no receive", hw.OpSend, []byte{0x12, 0x02, 0, 0}, hw.StatusReceiverNotReady},
		{"siw: no receive, or one too small", hw.OpSend, []byte{0x21, 0x02, 0x03, 0}, hw.StatusReceiverNotReady},
		{"too long", hw.OpSend, []byte{0x12, 0x05, 0, 0}, hw.StatusRemoteResponder},
		{"no receive, and it was a write", hw.OpWrite, []byte{0x12, 0x02, 0, 0}, hw.StatusFlushed},
		{"invalid STag", hw.OpWrite, []byte{0x11, 0x00, 0, 0}, hw.StatusRemoteAccess},
		{"siw: invalid STag", hw.OpWrite, []byte{0x11, 0x00, 0x03, 0}, hw.StatusRemoteAccess},
		{"bounds", hw.OpWrite, []byte{0x11, 0x01, 0, 0}, hw.StatusRemoteAccess},
		{"invalid STag, and it was a send", hw.OpSend, []byte{0x11, 0x00, 0, 0}, hw.StatusFlushed},
		{"siw: DDP version", hw.OpSend, []byte{0x21, 0x06, 0, 0}, hw.StatusRemoteResponder},
		{"CRC", hw.OpSend, []byte{0x20, 0x02, 0, 0}, hw.StatusFlushed},
		{"marker", hw.OpWrite, []byte{0x20, 0x03, 0, 0}, hw.StatusFlushed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways := &pipes{}
				n := newNode(t, New(ways.config()), bounds)
				b, m := n.peer(), n.memory(1<<20, hw.LocalRead)
				s := acceptedByPipe(t, ways, b, plain())
				b.awaitUp()
				for range 2 {
					b.post(hw.SendWR{Op: c.op, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 1<<20)}, RKey: 1})
				}
				s.next() // the first request has begun to leave
				h := wire.Header{Opcode: wire.OpTerminate, Last: true, MSN: 1}
				s.write(wire.AppendFPDU(nil, false, append(h.Append(nil), c.code...)))
				b.awaitDown()
				assert.Equal(t, hw.ReasonBroken, b.down)
				s.swallow()
				assert.Equal(t, c.want, b.sent(0).Status)
				assert.Equal(t, hw.StatusFlushed, b.sent(1).Status)
			})
		})
	}
}

// This end sends nothing after a Terminate, and ignores what the peer sends after its own.
func TestNothingIsSentOrTakenAfterATerminate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		n := newNode(t, New(ways.config()), bounds)
		b, m := n.peer(), n.memory(8, hw.RemoteWrite)
		s := acceptedByPipe(t, ways, b, plain())
		b.awaitUp()
		s.write(wire.AppendFPDU(nil, false, terminate(wire.TermMPACRC, nil, 0)))
		s.meanwhile(func() {
			write := wire.Header{Opcode: wire.OpWrite, Last: true, STag: m.RKey(), TO: m.base}
			_, _ = s.conn.Write(fpdu(false, write, []byte("too late")))
		})
		b.awaitDown()
		s.eof() // and no Terminate answers it
		b.end(false)
		time.Sleep(2 * lingerTime)
		assert.Equal(t, make([]byte, 8), m.buf)
	})
}
