//go:build guest

package ibv

import (
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// tcpEnd is an end of an iWARP connection that the test speaks itself, without CRCs and
// markers, over a connection of the system's.
type tcpEnd struct {
	t testing.TB
	net.Conn
}

func newTCPEnd(t testing.TB, conn net.Conn) *tcpEnd {
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = conn.Close() })
	return &tcpEnd{t, conn}
}

func (e *tcpEnd) take(n int) []byte {
	b := make([]byte, n)
	_, err := io.ReadFull(e, b)
	assert.NoError(e.t, err)
	return b
}

func (e *tcpEnd) put(b []byte) {
	_, err := e.Write(b)
	assert.NoError(e.t, err)
}

// takeMPA takes a request or an answer.
func (e *tcpEnd) takeMPA() []byte {
	b := e.take(wire.MPAHeaderSize)
	return append(b, e.take(wire.MPAFrameSize(b)-len(b))...)
}

// takeULPDU takes an FPDU: the header of its segment, and what follows that.
func (e *tcpEnd) takeULPDU() (h wire.Header, rest []byte) {
	b := e.take(wire.FPDULengthSize)
	length := wire.ULPDULength(b)
	b = e.take(wire.FPDUSize(length) - len(b))[:length]
	n, err := h.Parse(b, length)
	assert.NoError(e.t, err)
	return h, b[n:]
}

func (e *tcpEnd) putULPDU(h wire.Header, payload string) {
	e.put(wire.AppendFPDU(nil, false, h.Append(nil), []byte(payload)))
}

// siw forgets what comes between a request for a connection and the moment when it takes
// over the socket, until more comes. Here the initiator sends too early, so that siw has
// no chance.
func TestAnAcceptorOnSiwLearnsWhatCameBeforeItWasUp(t *testing.T) {
	if !onSIW(t) {
		return
	}
	b := &bench{t: t}
	acceptor := b.open(nil, nil)
	b.ends[0], b.ends[1] = b.open(nil, nil), acceptor
	t.Cleanup(b.close)
	in := acceptor.memory(16, hw.LocalWrite)
	acceptor.recv(7, in.sge(0, 16))
	requests := make(chan hw.Request, 1)
	l, err := acceptor.dev.Listen(hw.ListenConfig{OnRequest: func(r hw.Request) bool { requests <- r; return true }})
	require.NoError(t, err)
	conn, err := net.Dial("tcp", net.JoinHostPort(acceptor.dev.Attr().Address, strconv.FormatUint(l.Qual(), 10)))
	require.NoError(t, err)
	initiator := newTCPEnd(t, conn)
	ask := wire.MPARequest{Revision: wire.MPARevision2, Enhanced: true, Data: wire.EnhancedData{IRD: 1, ORD: 1}}
	initiator.put(ask.Append(nil))
	var r hw.Request
	select {
	case r = <-requests:
	case <-time.After(patience):
		require.Fail(t, "no request")
	}
	initiator.putULPDU(wire.Header{Opcode: wire.OpSend, MSN: 1, Last: true}, "too early")
	require.NoError(t, r.Accept(acceptor.qp, nil))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		initiator.takeMPA()
		h, rest := initiator.takeULPDU()
		assert.Equal(t, wire.OpReadRequest, h.Opcode)
		var read wire.ReadRequest
		_, err := read.Parse(rest)
		assert.NoError(t, err)
		assert.Zero(t, read.Size)
		initiator.putULPDU(wire.Header{Opcode: wire.OpReadResponse, STag: read.SinkSTag, TO: read.SinkTO, Last: true}, "")
	}()
	wc := acceptor.completion(7)
	assert.Equal(t, hw.StatusSuccess, wc.Status)
	assert.Equal(t, "too early", string(in.buf[:wc.Len]))
	<-answered
	require.NoError(t, l.Close())
}

// The peer may be late, too, with taking over the socket.
func TestAnInitiatorOnSiwNudgesAPeerThatIsLate(t *testing.T) {
	if !onSIW(t) {
		return
	}
	b := &bench{t: t}
	initiator := b.open(nil, nil)
	b.ends[0], b.ends[1] = initiator, b.open(nil, nil)
	t.Cleanup(b.close)
	ln, err := net.Listen("tcp", net.JoinHostPort(initiator.dev.Attr().Address, "0"))
	require.NoError(t, err)
	defer ln.Close()
	nudged := make(chan time.Duration, 1)
	go func() {
		conn, err := ln.Accept()
		if !assert.NoError(t, err) {
			return
		}
		peer := newTCPEnd(t, conn)
		ask, _, err := wire.ParseMPARequest(peer.takeMPA())
		assert.NoError(t, err)
		answer := wire.MPAReply{Revision: ask.Revision, Enhanced: ask.Enhanced, Data: wire.EnhancedData{IRD: 1, ORD: 1}}
		peer.put(answer.Append(nil))
		up := time.Now()
		for time.Since(up) < 3*time.Second {
			h, payload := peer.takeULPDU()
			assert.Equal(t, wire.OpWrite, h.Opcode)
			assert.Empty(t, payload)
		}
		nudged <- time.Since(up)
	}()
	port := ln.Addr().(*net.TCPAddr).Port
	require.NoError(t, initiator.qp.Connect(hw.ConnectConfig{Addr: initiator.dev.Attr().Address, Qual: uint64(port)}))
	initiator.until("Established", func() bool { return initiator.info != nil })
	initiator.until("a nudge after three seconds", func() bool { return len(nudged) > 0 })
}
