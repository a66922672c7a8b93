package iwarp

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// drawnMessage is a message of a made-up peer, and its expected effect.
type drawnMessage struct {
	op   wire.Opcode
	body []byte
	to   int // target of a write
}

// appendFPDUs cuts a message into FPDUs.
func (m *drawnMessage) appendFPDUs(dst []byte, g *memory, msn uint32, cuts []int, frame func([]byte, ...[]byte) []byte) []byte {
	h := wire.Header{Opcode: m.op, MSN: msn}
	if m.op == wire.OpWrite {
		h = wire.Header{Opcode: m.op, STag: g.RKey(), TO: g.base + uint64(m.to)}
	}
	rest := m.body
	for i := 0; ; i++ {
		n := len(rest)
		if i < len(cuts) {
			n = min(n, cuts[i])
		}
		h.Last = n == len(rest)
		dst = frame(dst, h.Append(nil), rest[:n])
		if h.Last {
			return dst
		}
		h.TO += uint64(n)
		h.MO += uint32(n)
		rest = rest[n:]
	}
}

const playground = 40000

func drawMessage(t *rapid.T) drawnMessage {
	m := drawnMessage{op: rapid.SampledFrom([]wire.Opcode{wire.OpSend, wire.OpSendSE, wire.OpWrite}).Draw(t, "op")}
	n := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 2000), rapid.IntRange(8000, 30000)).Draw(t, "length")
	m.body = make([]byte, n)
	seed := rapid.Byte().Draw(t, "seed")
	for i := range m.body {
		m.body[i] = seed + byte(i*13)
	}
	m.to = rapid.IntRange(0, playground-n).Draw(t, "to")
	if m.op == wire.OpWrite && n == 0 {
		m.to = 0
	}
	return m
}

// TestTheReceiverTakesAStreamHoweverItIsCut feeds the same messages in arbitrary
// pieces, over a pipe, where each piece is a read of its own, and over TCP.
func TestTheReceiverTakesAStreamHoweverItIsCut(t *testing.T) {
	ways := &pipes{}
	tcp, pipe := New(Config{}), New(ways.config())
	rapid.Check(t, func(t *rapid.T) {
		markers := rapid.Bool().Draw(t, "markers")
		params := map[string]string{"linger": "10s", "private": "248"}
		if markers {
			params["markers"] = "true"
		}
		crc := rapid.Bool().Draw(t, "crc")
		if !crc {
			params["crc"] = "false"
		}
		provider, dial := tcp, func(ln hw.Listener) (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) }
		if rapid.Bool().Draw(t, "pipe") {
			provider, dial = pipe, func(ln hw.Listener) (net.Conn, error) {
				return ways.dial(context.Background(), "here:"+portText(ln))
			}
		}
		feed(t, provider, params, dial, markers, crc)
	})
}

func portText(ln hw.Listener) string {
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

func feed(rt *rapid.T, p hw.Provider, params map[string]string, dial func(hw.Listener) (net.Conn, error), markers, crc bool) {
	n := newNode(rt, p, params)
	b := n.peer()
	into, target := n.memory(8*playground, hw.LocalWrite), n.memory(playground, hw.RemoteWrite)
	messages := rapid.SliceOfN(rapid.Custom(drawMessage), 1, 8).Draw(rt, "messages")
	cuts := rapid.SliceOfN(rapid.IntRange(1, 20000), 0, 4).Draw(rt, "segments")
	pieces := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 20000)), 1, 50).Draw(rt, "pieces")

	var pos uint64
	frame := func(dst []byte, parts ...[]byte) []byte {
		if !markers {
			return wire.AppendFPDU(dst, crc, parts...)
		}
		start := len(dst)
		dst = wire.AppendMarkedFPDU(dst, pos, crc, parts...)
		pos += uint64(len(dst) - start)
		return dst
	}
	var stream []byte
	var want [][]byte
	field := make([]byte, playground)
	msn := uint32(0)
	for i := range messages {
		m := &messages[i]
		if m.op != wire.OpWrite {
			msn++
			want = append(want, m.body)
		} else {
			copy(field[m.to:], m.body)
		}
		stream = m.appendFPDUs(stream, target, msn, cuts, frame)
	}
	ln, requests := n.listen(hw.ListenConfig{})
	conn, err := dial(ln)
	require.NoError(rt, err)
	defer conn.Close()
	req := plain()
	_, err = conn.Write(req.Append(nil))
	require.NoError(rt, err)
	for i := range want {
		b.recv(into.sge(i*playground, playground))
	}
	require.NoError(rt, (<-requests).Accept(b.qp, nil))
	require.NoError(rt, readFrame(conn, func(b []byte) error { _, _, err := wire.ParseMPAReply(b); return err }))
	for i := 0; len(stream) > 0; i++ {
		k := min(pieces[i%len(pieces)], len(stream))
		_, err := conn.Write(stream[:k])
		require.NoError(rt, err)
		stream = stream[k:]
	}
	_ = conn.Close() // an orderly end: the peer has read everything
	b.awaitDown()
	require.Equal(rt, hw.ReasonPeer, b.down)
	for i, body := range want {
		require.Equal(rt, hw.StatusSuccess, b.recvs[i].Status)
		require.True(rt, bytes.Equal(body, into.buf[i*playground:][:b.recvs[i].Len]), "message %d", i)
	}
	require.True(rt, bytes.Equal(field, target.buf), "what was written")
}
