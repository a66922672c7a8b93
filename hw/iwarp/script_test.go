package iwarp

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// script is a peer that sends exactly the octets that a test wants.
type script struct {
	tb   tester
	conn net.Conn
	crc  bool
}

func newScript(tb tester, conn net.Conn) *script {
	tb.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &script{tb: tb, conn: conn}
}

// dialScript connects to a listener.
func dialScript(tb tester, ln hw.Listener) *script {
	tb.Helper()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(tb, err)
	return newScript(tb, conn)
}

func (s *script) write(b []byte) {
	s.tb.Helper()
	_, err := s.conn.Write(b)
	require.NoError(s.tb, err)
}

// fpdu is an FPDU around header and body.
func fpdu(crc bool, h wire.Header, parts ...[]byte) []byte {
	return wire.AppendFPDU(nil, crc, append([][]byte{h.Append(nil)}, parts...)...)
}

// reply reads a reply.
func (s *script) reply() wire.MPAReply {
	s.tb.Helper()
	var r wire.MPAReply
	require.NoError(s.tb, readFrame(s.conn, func(b []byte) (err error) {
		r, _, err = wire.ParseMPAReply(b)
		return err
	}))
	return r
}

func (s *script) request() wire.MPARequest {
	s.tb.Helper()
	var r wire.MPARequest
	require.NoError(s.tb, readFrame(s.conn, func(b []byte) (err error) {
		r, _, err = wire.ParseMPARequest(b)
		return err
	}))
	return r
}

// next reads an FPDU: its header, and what follows it.
func (s *script) next() (h wire.Header, body []byte) {
	s.tb.Helper()
	var b [2]byte
	_, err := io.ReadFull(s.conn, b[:])
	require.NoError(s.tb, err)
	rest := make([]byte, wire.FPDUSize(int(binary.BigEndian.Uint16(b[:])))-2)
	_, err = io.ReadFull(s.conn, rest)
	require.NoError(s.tb, err)
	ulpdu, _, err := wire.ParseFPDU(append(b[:], rest...), s.crc)
	require.NoError(s.tb, err)
	n, err := h.Parse(ulpdu, len(ulpdu))
	require.NoError(s.tb, err)
	return h, ulpdu[n:]
}

// terminate reads FPDUs up to a Terminate, and then the end of the stream.
func (s *script) terminate() wire.Terminate {
	s.tb.Helper()
	for {
		h, body := s.next()
		if h.Opcode != wire.OpTerminate {
			continue
		}
		t, _, err := wire.ParseTerminate(body, true)
		require.NoError(s.tb, err)
		s.eof()
		return t
	}
}

// eof reads the end of the stream.
func (s *script) eof() {
	s.tb.Helper()
	n, err := s.conn.Read(make([]byte, 1))
	assert.Zero(s.tb, n)
	require.Error(s.tb, err)
	assert.False(s.tb, isTimeout(err), "the peer closed the connection")
}

// plain is a request without options, as siw makes it.
func plain() wire.MPARequest {
	return wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}}
}

// accepted is a script that b has accepted, without CRCs unless it asks for them.
func accepted(tb tester, b *peer, req wire.MPARequest) (*script, wire.MPAReply) {
	tb.Helper()
	ln, requests := b.listen(hw.ListenConfig{})
	s := dialScript(tb, ln)
	s.write(req.Append(nil))
	require.NoError(tb, (<-requests).Accept(b.qp, []byte("welcome")))
	r := s.reply()
	s.crc = r.CRC
	return s, r
}

// answering is a listener for scripts that answer: a starts to connect to it.
func answering(tb tester, a *peer, cfg hw.ConnectConfig) (net.Listener, *script) {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = ln.Close() })
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	cfg.Addr = "127.0.0.1"
	cfg.Qual, _ = strconv.ParseUint(port, 10, 16)
	require.NoError(tb, a.qp.Connect(cfg))
	return ln, acceptScript(tb, ln)
}

func acceptScript(tb tester, ln net.Listener) *script {
	tb.Helper()
	conn, err := ln.Accept()
	require.NoError(tb, err)
	return newScript(tb, conn)
}

// obliging is a reply that accepts all that a request offers.
func obliging(req wire.MPARequest) wire.MPAReply {
	return wire.MPAReply{Revision: req.Revision, Enhanced: req.Enhanced, Data: wire.EnhancedData{
		PeerToPeer: req.Data.PeerToPeer, WriteRTR: true, IRD: 4, ORD: 4,
	}}
}

// scripted is a script that a has connected to; CRCs are off.
func scripted(tb tester, a *peer) *script {
	tb.Helper()
	_, s := answering(tb, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	s.write(reply.Append(nil))
	a.awaitUp()
	return s
}

var noCRC = map[string]string{"fallback": "true", "crc": "false", "mpa": "10s", "grace": "20ms", "linger": "10s"}
