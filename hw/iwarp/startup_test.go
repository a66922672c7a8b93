package iwarp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/reject"
	"godat/hw/iwarp/wire"
)

// edited is a frame with some octets changed.
func edited(frame []byte, change func([]byte)) []byte {
	change(frame)
	return frame
}

func TestAnInvalidRequestIsHungUpOn(t *testing.T) {
	p := plain()
	reply := wire.MPAReply{Revision: 2}
	for name, b := range map[string][]byte{
		"something else":       []byte("GET / HTTP/1.1\r\n\r\n"),
		"a reply":              reply.Append(nil),
		"revision 3":           edited(p.Append(nil), func(b []byte) { b[17] = 3 }),
		"revision 0":           edited(p.Append(nil), func(b []byte) { b[17] = 0 }),
		"private data too big": edited(p.Append(nil), func(b []byte) { b[18], b[19] = 2, 1 }),
		"S without its block":  edited(p.Append(nil)[:20], func(b []byte) { b[18], b[19] = 0, 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			b2 := newNode(t, New(Config{}), noCRC)
			ln, requests := b2.listen(hw.ListenConfig{})
			s := dialScript(t, ln)
			s.write(b)
			s.eof()
			assert.Empty(t, requests)
		})
	}
}

func TestAReplyFitsItsRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		req   wire.MPARequest
		reply wire.MPAReply
		first func(*script) // what the initiator sends first
	}{
		{"siw's", plain(), wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}}, nil},
		{
			"deeper reads",
			wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 2, ORD: 128}},
			wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 2}},
			nil,
		},
		{
			"reads not negotiated",
			wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: wire.NotNegotiated, ORD: wire.NotNegotiated}},
			wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
			nil,
		},
		{
			"with CRCs",
			wire.MPARequest{Revision: 2, CRC: true, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
			wire.MPAReply{Revision: 2, CRC: true, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
			nil,
		},
		{"revision 1", wire.MPARequest{Revision: 1}, wire.MPAReply{Revision: 1}, nil},
		{
			"peer to peer, a write",
			wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{PeerToPeer: true, WriteRTR: true, IRD: 4, ORD: 4}},
			wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{PeerToPeer: true, WriteRTR: true, IRD: 4, ORD: 4}},
			func(s *script) { s.write(fpdu(s.crc, wire.Header{Opcode: wire.OpWrite, Last: true, STag: 1})) },
		},
		{
			"peer to peer, a read",
			wire.MPARequest{Revision: 2, Enhanced: true, Data: wire.EnhancedData{PeerToPeer: true, ReadRTR: true, IRD: 4, ORD: 4}},
			wire.MPAReply{Revision: 2, Enhanced: true, Data: wire.EnhancedData{PeerToPeer: true, ReadRTR: true, IRD: 4, ORD: 4}},
			func(s *script) {
				r := wire.ReadRequest{SinkSTag: 1, SrcSTag: 1}
				s.write(fpdu(s.crc, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 1}, r.Append(nil)))
				h, body := s.next()
				assert.Equal(s.tb, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1}, h)
				assert.Empty(s.tb, body)
			},
		},
		{
			"big FPDUs",
			wire.MPARequest{Revision: 2, BigFPDU: true, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
			wire.MPAReply{Revision: 2, BigFPDU: true, Enhanced: true, Data: wire.EnhancedData{IRD: 4, ORD: 4}},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newNode(t, New(Config{}), noCRC).peer()
			s, reply := accepted(t, b, c.req)
			c.reply.Private = []byte("welcome")
			assert.Equal(t, c.reply, reply)
			if c.first != nil {
				c.first(s)
			}
			b.awaitUp() // by the first FPDU, or the grace
			b.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled})
			h, _ := s.next()
			assert.Equal(t, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, h)
			_ = s.conn.(*net.TCPConn).CloseWrite()
			b.awaitDown()
			assert.Equal(t, hw.ReasonPeer, b.down)
		})
	}
}

func TestEachReplyHasItsOutcome(t *testing.T) {
	edit := func(f func(*wire.MPAReply)) func(wire.MPARequest) []byte {
		return func(req wire.MPARequest) []byte {
			r := obliging(req)
			f(&r)
			return r.Append(nil)
		}
	}
	for _, c := range []struct {
		name  string
		reply func(wire.MPARequest) []byte
		want  hw.Reason
		term  wire.TermCode
	}{
		{"reject", edit(func(r *wire.MPAReply) { r.Reject = true }), hw.ReasonPeerRejected, 0},
		{"reject with private data", edit(func(r *wire.MPAReply) { r.Reject, r.Private = true, []byte("no") }), hw.ReasonPeerRejected, 0},
		{"our provider's own reject", edit(func(r *wire.MPAReply) {
			r.Reject, r.Private = true, reject.ByProvider()
		}), hw.ReasonRejected, 0},
		{"no S for S", edit(func(r *wire.MPAReply) { r.Enhanced = false }), hw.ReasonRejected, 0},
		{"another revision", edit(func(r *wire.MPAReply) { r.Revision, r.Enhanced = 1, false }), hw.ReasonRejected, 0},
		{"a request", func(req wire.MPARequest) []byte { return req.Append(nil) }, hw.ReasonRejected, 0},
		{"garbage", func(wire.MPARequest) []byte { return []byte("SSH-2.0-OpenSSH") }, hw.ReasonRejected, 0},
		{"too much private data", func(req wire.MPARequest) []byte {
			r := obliging(req)
			return edited(r.Append(nil), func(b []byte) { b[18], b[19] = 2, 1 })
		}, hw.ReasonRejected, 0},
		{"S without its block", func(req wire.MPARequest) []byte {
			r := obliging(req)
			return edited(r.Append(nil), func(b []byte) { b[18], b[19] = 0, 3 })
		}, hw.ReasonRejected, 0},
		{"revision 3", edit(func(r *wire.MPAReply) { r.Revision = 3 }), hw.ReasonRejected, 0},
		{"half a reply", func(req wire.MPARequest) []byte { r := obliging(req); return r.Append(nil)[:10] }, hw.ReasonRejected, 0},
		{"reads that we can't take", edit(func(r *wire.MPAReply) { r.Data.ORD = 100 }), hw.ReasonRejected, wire.TermMPAIRD},
		{"no ready-to-receive", edit(func(r *wire.MPAReply) { r.Data.WriteRTR = false }), hw.ReasonRejected, wire.TermMPARTR},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newNode(t, New(Config{}), promising).peer()
			_, s := answering(t, a, hw.ConnectConfig{})
			s.write(c.reply(s.request()))
			if c.name == "half a reply" {
				_ = s.conn.(*net.TCPConn).CloseWrite()
			}
			if c.term != 0 {
				h, body := s.next()
				require.Equal(t, wire.OpTerminate, h.Opcode)
				term, _, err := wire.ParseTerminate(body, false)
				require.NoError(t, err)
				assert.Equal(t, c.term, term.Code)
			}
			a.await("refusal", func() bool { return a.refused != 0 })
			assert.Equal(t, c.want, a.refused)
			s.eof()
		})
	}
}

// A server of another protocol answers when the request happens to have what ends one of its own, such as the end of
// a line, and its answer may come in pieces.
func TestTheCauseOfAnAnswerOfAnotherProtocolSaysWhichOne(t *testing.T) {
	for answer, says := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n": "HTTP",
		"HT":                           "HTTP",
		"H":                            "HTTP",
		"\x15\x03\x01\x00\x02\x02\x0a": "TLS",
		"\x16\x03":                     "TLS",
		"\x15":                         "TLS",
		"SSH-2.0-OpenSSH_9.6\r\n":      `"SSH-2.0-OpenSSH_`,
		"MPA ID Rex":                   `"MPA ID Rex"`,
	} {
		t.Run(strconv.Quote(answer), func(t *testing.T) {
			a := newNode(t, New(Config{}), noCRC).peer()
			_, s := answering(t, a, hw.ConnectConfig{})
			s.request()
			s.write([]byte(answer))
			a.await("refusal", func() bool { return a.refused != 0 })
			assert.Equal(t, hw.ReasonRejected, a.refused)
			require.ErrorIs(t, a.cause, wire.ErrMPAKey)
			assert.ErrorContains(t, a.cause, "what listens there")
			assert.ErrorContains(t, a.cause, says)
			assert.ErrorContains(t, a.cause, "found here")
			assert.Equal(t, says == "HTTP", strings.Contains(a.cause.Error(), "as HTTP does"))
			assert.Equal(t, says == "TLS", strings.Contains(a.cause.Error(), "as TLS does"))
		})
	}
}

func TestAPeerThatHangsUpIsAskedAgainWithRevisionOne(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	ln, s := answering(t, a, hw.ConnectConfig{Private: []byte("hello")})
	assert.Equal(t, uint8(2), s.request().Revision)
	_ = s.conn.Close()
	s = acceptScript(t, ln)
	req := s.request()
	assert.Equal(t, wire.MPARequest{Revision: 1, BigFPDU: true, Private: []byte("hello")}, req)
	reply := wire.MPAReply{Revision: 1, Private: []byte("yes")}
	s.write(reply.Append(nil))
	a.awaitUp()
	assert.Equal(t, "yes", string(a.info.Private))
	a.post(hw.SendWR{Op: hw.OpSend})
	h, _ := s.next()
	assert.Equal(t, wire.OpSend, h.Opcode, "without a ready-to-receive")
}

func TestARefusedSecondAttemptTellsWhatBecameOfTheFirst(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	ln, s := answering(t, a, hw.ConnectConfig{})
	s.request()
	require.NoError(t, ln.Close())
	require.NoError(t, s.conn.Close())
	a.await("refusal", func() bool { return a.refused != 0 })
	assert.Equal(t, hw.ReasonRejected, a.refused)
	require.ErrorIs(t, a.cause, errHungUp)
	require.ErrorIs(t, a.cause, syscall.ECONNREFUSED)
	assert.Equal(t, hw.SideLocal, a.cause.Found)
	assert.Regexp(t, "^TCP: the listener hung up before it answered: .*; asked again with MPA revision 1: .*refused", a.cause.Error())
}

func TestFPDUsRightBehindTheReplyAreTaken(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(5, hw.LocalWrite)
	a.recv(m.sge(0, 5))
	_, s := answering(t, a, hw.ConnectConfig{})
	reply := obliging(s.request())
	s.write(append(reply.Append(nil), fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, []byte("early"))...))
	assert.Equal(t, uint32(5), a.received(0).Len)
	assert.Equal(t, "early", string(m.buf))
	assert.NotNil(t, a.info)
}

// promising holds the settings of an initiator that asks for the peer-to-peer model.
var promising = map[string]string{"fallback": "true", "crc": "false", "mpa": "10s", "grace": "20ms", "linger": "10s", "peer2peer": "true"}

func TestTheReadyToReceiveIsWhatTheReplyChose(t *testing.T) {
	a := newNode(t, New(Config{}), promising).peer()
	_, s := answering(t, a, hw.ConnectConfig{})
	req := s.request()
	require.True(t, req.Data.PeerToPeer && req.Data.WriteRTR && req.Data.ReadRTR)
	reply := obliging(req)
	reply.Data.WriteRTR, reply.Data.ReadRTR = false, true
	s.write(reply.Append(nil))
	h, body := s.next()
	assert.Equal(t, wire.Header{Opcode: wire.OpReadRequest, Last: true, MSN: 1}, h)
	var r wire.ReadRequest
	_, err := r.Parse(body)
	require.NoError(t, err)
	assert.Equal(t, wire.ReadRequest{SinkSTag: 1, SrcSTag: 1}, r, "hardware refuses an STag of 0")
	a.awaitUp()
	s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: 1}))
	a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled | hw.WRFence})
	h, _ = s.next()
	assert.Equal(t, wire.OpSend, h.Opcode, "behind the fence")
}

// A peer's kernel that waits for a ready-to-receive may crash if the connection ends
// before the ready-to-receive comes.
func TestAPeerOfAnotherKindIsPromisedNoReadyToReceive(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	_, s := answering(t, a, hw.ConnectConfig{})
	req := s.request()
	assert.False(t, req.Data.PeerToPeer || req.Data.WriteRTR || req.Data.ReadRTR)
	reply := obliging(req)
	reply.Data.PeerToPeer = true // which the request did not ask for
	s.write(reply.Append(nil))
	a.awaitUp()
	a.post(hw.SendWR{Op: hw.OpSend})
	h, _ := s.next()
	assert.Equal(t, wire.OpSend, h.Opcode, "without a ready-to-receive")
}

func TestAPeerOfOurKindHasAReadyToReceiveWithoutAPromise(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	_, s := answering(t, a, hw.ConnectConfig{})
	req := s.request()
	require.False(t, req.Data.PeerToPeer)
	require.True(t, req.Data.SendRTR && req.BigFPDU, "the signs of our kind")
	reply := obliging(req)
	reply.Data.SendRTR, reply.BigFPDU = true, true
	s.write(reply.Append(nil))
	h, body := s.next()
	assert.Equal(t, wire.Header{Opcode: wire.OpWrite, Last: true, STag: rtrSTag}, h)
	assert.Empty(t, body)
	a.awaitUp()
}

func TestAnInitiatorOfOurKindSendsBeforeTheConnectionIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		b := newNode(t, New(ways.config()), bounds).peer()
		s := acceptedByPipe(t, ways, b, ours())
		time.Sleep(2 * graceTime)
		synctest.Wait()
		b.mu.Lock()
		assert.Nil(t, b.info, "the grace is for initiators of other kinds")
		b.mu.Unlock()
		s.write(rtrFPDU)
		b.awaitUp()
		_ = s.conn.Close()
	})
}

func TestQualifiersArePorts(t *testing.T) {
	n := newNode(t, New(Config{}), nil)
	a := n.peer()
	assert.ErrorIs(t, a.qp.Connect(hw.ConnectConfig{Addr: "127.0.0.1", Qual: 1 << 16}), hw.ErrInvalidParameter)
	_, err := n.dev.Listen(hw.ListenConfig{Qual: 1 << 16, OnRequest: func(hw.Request) bool { return false }})
	assert.ErrorIs(t, err, hw.ErrInvalidParameter)
	_, err = n.dev.Listen(hw.ListenConfig{Addr: "192.0.2.1", OnRequest: func(hw.Request) bool { return false }})
	assert.ErrorIs(t, err, hw.ErrInvalidAddress)
}

func TestParametersAreChecked(t *testing.T) {
	const aFlag, aTime, aLimit = "it may be true or false", "it may be 0, or a time longer than 0, such as 30s", "it may be a time longer than 0, such as 30s"
	for _, p := range []struct{ key, value, may string }{
		{"crc", "perhaps", aFlag},
		{"markers", "2", aFlag},
		{"big", "", aFlag},
		{"extensions", "on", aFlag},
		{"fallback", "-1", aFlag},
		{"peer2peer", "yes", aFlag},
		{"fpdu", "64777", "0, or 136 to 64776"},
		{"fpdu", "135", "0, or 136 to 64776"},
		{"fpdu", "-1", "0, or 136 to 64776"},
		{"revision", "3", "1 to 2"},
		{"revision", "0", "1 to 2"},
		{"private", "509", "0 to 508"},
		{"private", "few", "0 to 508"},
		{"buffer", "-1", "0 to 1073741824"},
		{"buffer", "1073741825", "0 to 1073741824"},
		{"halfopen", "0", "1 to 1048576"},
		{"halfopenip", "1048577", "1 to 1048576"},
		{"reply", "-1s", aTime},
		{"reply", "9999999h", aTime},
		{"nudge", "-1ns", aTime},
		{"keepalive", "-30s", "1ms or more"},
		{"keepalive", "3ns", "it may be 0, or a time of 1ms or more, such as 30s"},
		{"keepalive", "30", "1ms or more"},
		{"mpa", "0s", aLimit},
		{"stall", "-1s", aLimit},
		{"grace", "0", aLimit},
		{"linger", "soon", aLimit},
		{"congestion", "none such", ""},
		{"CRC", "true", ""},
		{"", "", ""},
	} {
		params := map[string]string{p.key: p.value}
		_, err := New(Config{}).Open(hw.OpenConfig{Params: params})
		assert.ErrorIs(t, err, hw.ErrInvalidParameter, "%v", p)
		_, err = New(Config{Params: params}).Open(hw.OpenConfig{})
		assert.ErrorIs(t, err, hw.ErrInvalidParameter, "%v", p)
		if p.may != "" && assert.Error(t, err) {
			assert.Contains(t, err.Error(), fmt.Sprintf("parameter %s=%q: ", p.key, p.value))
			assert.Contains(t, err.Error(), p.may)
		}
	}
}

func TestTheProviderIsRegistered(t *testing.T) {
	p, ok := hw.Lookup(Name)
	require.True(t, ok)
	dev, err := p.Open(hw.OpenConfig{})
	require.NoError(t, err)
	assert.NotEmpty(t, dev.Attr().Address)
	assert.NoError(t, dev.Close())
}
