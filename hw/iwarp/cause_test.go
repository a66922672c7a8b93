package iwarp

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// The end of the peer's stream is orderly unless a request of this end is outstanding. It
// is orderly in any case after a farewell.
func TestAPeerWhoseStreamEndsWithARequestOutstandingIsLost(t *testing.T) {
	for _, c := range []struct {
		name           string
		read, farewell bool
		want           hw.Reason
	}{
		{"nothing outstanding", false, false, hw.ReasonPeer},
		{"a read outstanding", true, false, hw.ReasonBroken},
		{"a read outstanding, and a farewell", true, true, hw.ReasonPeer},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, New(Config{}), noCRC)
			b, m := n.peer(), n.memory(64, hw.LocalWrite)
			s, _ := accepted(t, b, plain())
			s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
			b.awaitUp()
			if c.read {
				b.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{m.sge(0, 64)}, RKey: 7})
				h, _ := s.next()
				require.Equal(t, wire.OpReadRequest, h.Opcode)
			}
			if c.farewell {
				s.write(wire.AppendFPDU(nil, false, farewell()))
			}
			require.NoError(t, s.conn.Close())
			b.awaitDown()
			assert.Equal(t, c.want, b.down)
			if c.want == hw.ReasonBroken {
				require.NotNil(t, b.cause)
				assert.Equal(t, hw.LayerTCP, b.cause.Layer)
				assert.Equal(t, hw.SideLocal, b.cause.Found, "no peer said so")
				assert.Contains(t, b.cause.Error(), "1 requests to it outstanding")
			}
		})
	}
}

// A process that is killed sends no farewell, and the system closes its connections.
func TestAPeerOfThisPackageThatLeavesWithoutAFarewellHasDied(t *testing.T) {
	for farewelled, want := range map[bool]hw.Reason{false: hw.ReasonBroken, true: hw.ReasonPeer} {
		n := newNode(t, New(Config{}), noCRC)
		b := n.peer()
		s, _ := accepted(t, b, ours())
		s.write(rtrFPDU)
		b.awaitUp()
		if farewelled {
			s.write(wire.AppendFPDU(nil, false, farewell()))
		}
		require.NoError(t, s.conn.Close())
		b.awaitDown()
		assert.Equal(t, want, b.down)
		if !farewelled {
			assert.ErrorContains(t, b.cause, "without a farewell: ")
			assert.NotContains(t, b.cause.Error(), "has died", "that is not known")
		}
	}
}

func TestAnInitiatorWithoutAPromiseThatLeavesAtOnceWasConnected(t *testing.T) {
	n := newNode(t, New(Config{}), map[string]string{"crc": "false", "mpa": "10s", "grace": "10s"})
	b := n.peer()
	s, _ := accepted(t, b, plain())
	require.NoError(t, s.conn.Close())
	b.awaitDown()
	assert.Zero(t, b.refused)
	assert.NotNil(t, b.info)
	assert.Equal(t, hw.ReasonPeer, b.down)
}

func TestAnAttemptThatIsGivenUpResetsItsStream(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  time.Duration
		giveUp func(*peer, *script)
	}{
		{"by Break", patience, func(p *peer, s *script) { s.request(); p.end(false) }},
		{"by its time", 50 * time.Millisecond, func(p *peer, _ *script) {
			p.await("refusal", func() bool { return p.refused != 0 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newNode(t, New(Config{}), nil).peer()
			_, s := answering(t, a, hw.ConnectConfig{Timeout: c.limit})
			c.giveUp(a, s)
			_, err := io.Copy(io.Discard, s.conn)
			require.ErrorIs(t, err, syscall.ECONNRESET)
		})
	}
}

func TestATerminateIsTheCauseWithItsText(t *testing.T) {
	for _, c := range []struct {
		code  wire.TermCode
		layer hw.Layer
		want  string
	}{
		{wire.TermUntaggedNoBuffer, hw.LayerDDP, "DDP: untagged buffer: no buffer available (0x1202), found by the peer"},
		{wire.TermProtectionAccess, hw.LayerRDMAP, "RDMAP: remote protection: access rights violation (0x0102), found by the peer"},
		{wire.TermMPACRC, hw.LayerMPA, "MPA: CRC mismatch (0x2002), found by the peer"},
	} {
		n := newNode(t, New(Config{}), noCRC)
		b := n.peer()
		s, _ := accepted(t, b, plain())
		s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
		b.awaitUp()
		s.write(wire.AppendFPDU(nil, false, terminate(c.code, nil, 0)))
		b.awaitDown()
		require.NotNil(t, b.cause)
		assert.Equal(t, c.layer, b.cause.Layer)
		assert.Equal(t, int(c.code), b.cause.Code)
		assert.Contains(t, b.cause.Error(), c.want)
		assert.NotNil(t, b.cause.Remote)
	}
}

func TestAnErrorFoundAtThisEndIsTheCause(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b := n.peer()
	s, _ := accepted(t, b, plain())
	s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
	b.awaitUp()
	s.write(fpdu(false, sendHeader, []byte("nobody has posted a receive")))
	assert.Equal(t, wire.TermUntaggedNoBuffer, s.terminate().Code)
	b.awaitDown()
	require.ErrorIs(t, b.cause, wire.ErrNoBuffer)
	assert.Equal(t, hw.SideLocal, b.cause.Found)
	assert.Equal(t, hw.LayerDDP, b.cause.Layer)
}

// The peer has done nothing wrong, so the cause names what failed at this end.
func TestTheCauseNamesTheOperationWhoseMemoryIsGone(t *testing.T) {
	begun := func(t *testing.T) (a *peer, s *script, m *memory) {
		n := newNode(t, New(Config{}), noCRC)
		a, m = n.peer(), n.memory(8, hw.AllPrivileges)
		return a, scripted(t, a), m
	}
	check := func(t *testing.T, a *peer, op hw.Op) {
		a.awaitDown()
		require.ErrorIs(t, a.cause, hw.StatusLocalProtection.Err())
		assert.Equal(t, hw.SideLocal, a.cause.Found)
		assert.ErrorContains(t, a.cause, op.String())
	}
	t.Run("a read", func(t *testing.T) {
		a, s, m := begun(t)
		a.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{m.sge(0, 8)}})
		_, body := s.next()
		var r wire.ReadRequest
		_, err := r.Parse(body)
		require.NoError(t, err)
		require.NoError(t, m.Deregister())
		s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: r.SinkSTag}, make([]byte, 8)))
		check(t, a, hw.OpRead)
	})
	t.Run("a receive", func(t *testing.T) {
		a, s, m := begun(t)
		a.recv(m.sge(0, 8))
		require.NoError(t, m.Deregister())
		s.write(fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}, make([]byte, 8)))
		check(t, a, hw.OpRecv)
	})
}

func TestACauseNamesItsLayerOnce(t *testing.T) {
	for _, e := range []*wire.Error{wire.ErrMPALocal, wire.ErrDDPLocal, wire.ErrRDMAPLocal} {
		c := faultCause(e)
		assert.NotContains(t, c.Text, c.Layer.String()+":")
	}
}

func TestAResetIsTheCauseWithItsErrno(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b := n.peer()
	s, _ := accepted(t, b, plain())
	s.write(fpdu(false, wire.Header{Opcode: wire.OpWrite, Last: true}))
	b.awaitUp()
	require.NoError(t, s.conn.(interface{ SetLinger(int) error }).SetLinger(0))
	require.NoError(t, s.conn.Close())
	b.awaitDown()
	require.ErrorIs(t, b.cause, syscall.ECONNRESET)
	assert.Equal(t, int(syscall.ECONNRESET), b.cause.Code)
	assert.Equal(t, hw.SideLocal, b.cause.Found, "the peer's system reset the connection, and no peer said why")
}

func TestNoCauseMatchesTheOrderlyEndOfAStream(t *testing.T) {
	for _, cause := range []*hw.Cause{tcpCause(io.EOF), tcpCause(io.ErrUnexpectedEOF), attemptCause(io.EOF), behind(dialCause(io.EOF), io.EOF)} {
		require.ErrorIs(t, cause, io.ErrUnexpectedEOF)
		assert.NotErrorIs(t, cause, io.EOF)
	}
}

// ofTLS is a connection of crypto/tls, and wrapped one in a program's wrapper.
type (
	ofTLS   struct{ net.Conn }
	wrapped struct{ net.Conn }
)

func (ofTLS) HandshakeContext(context.Context) error { return nil }
func (w wrapped) NetConn() net.Conn                  { return w.Conn }

func TestADialSaysWhatItSawAndWhatItsOwnSideSpoke(t *testing.T) {
	over := ofTLS{}
	for _, c := range []struct {
		conn     net.Conn
		err      error
		says, no string
	}{
		{new(net.TCPConn), io.EOF, "the listener hung up before it answered: it is closing or full, or wants TLS, which this end did not begin", "HTTP"},
		{new(net.TCPConn), syscall.ECONNRESET, "reset the connection before it answered", "hung up"},
		{over, io.EOF, "behind the start-up of TLS, before it answered: it speaks no iWARP", "did not begin"},
		{wrapped{over}, syscall.ECONNRESET, "reset the connection behind the start-up of TLS", "did not begin"},
		{nil, syscall.ECONNRESET, "the listener ended the handshake of this end's iwarp.Config.Dial (TLS, as a rule): it has no TLS, or is closing or full: its page tells", "did not begin"},
	} {
		cause := dialCause(howHungUp(c.conn, hungUp(c.err)))
		assert.Contains(t, cause.Text, c.says)
		assert.NotContains(t, cause.Text, c.no)
		assert.Less(t, len(cause.Error()), 250)
		require.ErrorIs(t, cause, errHungUp)
		assert.NotContains(t, attemptCause(hungUp(c.err)).Text, "closing", "an accept has no listener at the other end")
		assert.Equal(t, cause.Text, behind(cause, howHungUp(c.conn, hungUp(c.err))).Text, "once for two attempts")
	}
	assert.Equal(t, "connection refused", dialCause(syscall.ECONNREFUSED).Text)
	assert.Equal(t, syscall.ECONNREFUSED, howHungUp(nil, syscall.ECONNREFUSED))
}

func TestASocketThatThisProgramClosedIsNotBlamedOnThePeer(t *testing.T) {
	c := tcpCause(&net.OpError{Op: "read", Err: net.ErrClosed})
	assert.Contains(t, c.Error(), "this program itself has closed the socket")
	assert.NotContains(t, c.Error(), "use of closed")
	assert.ErrorIs(t, c, net.ErrClosed)
}

// DDP has one code for a key that is none and for memory that may not be written. Both ends say so.
func TestTheCauseOfAWriteThatTheMemoryDoesNotAllowNamesThePrivilege(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, noCRC), newNode(t, p, noCRC)
	a, b := na.peer(), nb.peer()
	source, sink := na.memory(8, hw.LocalRead), nb.memory(8, hw.LocalRead|hw.LocalWrite|hw.RemoteRead)
	join(a, b)
	a.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{source.sge(0, 8)}, RemoteAddr: sink.base, RKey: sink.RKey()})
	for _, end := range []*peer{a, b} {
		end.awaitDown()
		assert.ErrorContains(t, end.cause, "RemoteWrite")
	}
}
