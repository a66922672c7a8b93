package iwarp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
	"godat/internal/owner"
)

func TestExtensionsWorkBetweenOurOwnEnds(t *testing.T) {
	for _, params := range []map[string]string{nil, {"markers": "true"}} {
		a, b := pair(t, params)
		src, dst := a.memory(64, hw.AllPrivileges), b.memory(64, hw.AllPrivileges|hw.RemoteAtomic)
		copy(src.buf, "something to write")
		b.recv()
		b.recv()
		b.recv()
		a.post(
			hw.SendWR{Op: hw.OpWriteImm, Flags: hw.WRSignaled | hw.WRSolicited, Imm: 0xcafe, SGL: []hw.SGE{src.sge(0, 18)}, RKey: dst.RKey(), RemoteAddr: dst.base},
			hw.SendWR{Op: hw.OpWriteImm, Flags: hw.WRSignaled, Imm: 1},
			hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled},
		)
		wc := b.received(0)
		assert.Equal(t, hw.WC{Op: hw.OpRecvImm, Flags: hw.WCImm | hw.WCSolicited, Imm: 0xcafe, Len: 18}, wc)
		assert.Equal(t, "something to write", string(dst.buf[:18]))
		assert.Equal(t, hw.WC{Op: hw.OpRecvImm, Flags: hw.WCImm, Imm: 1}, b.received(1))
		assert.Equal(t, hw.OpRecv, b.received(2).Op)
		assert.Equal(t, hw.WC{Op: hw.OpWriteImm, Len: 18}, a.sent(0))

		binary.NativeEndian.PutUint64(dst.buf[32:], 40)
		atomic := hw.SendWR{Op: hw.OpFetchAdd, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(32, 3), src.sge(35, 5)}, RKey: dst.RKey(), RemoteAddr: dst.base + 32, Operand: 2}
		a.post(atomic)
		assert.Equal(t, hw.WC{Op: hw.OpFetchAdd, Len: 8}, a.sent(3))
		assert.Equal(t, uint64(40), binary.NativeEndian.Uint64(src.buf[32:]))
		swap := atomic
		swap.Op, swap.Compare, swap.Operand = hw.OpCompareSwap, 42, 7
		a.post(swap, swap)
		a.sent(5)
		assert.Equal(t, uint64(7), binary.NativeEndian.Uint64(src.buf[32:]), "the second found what the first has stored")
		assert.Equal(t, uint64(7), binary.NativeEndian.Uint64(dst.buf[32:]))

		atomic.RemoteAddr++
		a.post(atomic)
		assert.Equal(t, hw.StatusRemoteResponder, a.sent(6).Status, "not aligned")
	}
}

func TestAnAtomicNeedsItsPrivilege(t *testing.T) {
	a, b := pair(t, nil)
	src, dst := a.memory(8, hw.LocalWrite), b.memory(8, hw.AllPrivileges)
	a.post(hw.SendWR{Op: hw.OpFetchAdd, SGL: []hw.SGE{src.sge(0, 8)}, RKey: dst.RKey(), RemoteAddr: dst.base, Operand: 2})
	assert.Equal(t, hw.StatusRemoteAccess, a.sent(0).Status)
	assert.Equal(t, make([]byte, 8), dst.buf)
}

func TestExtensionsAreRefusedWhereThePeerHasNone(t *testing.T) {
	t.Parallel()
	p := New(Config{})
	a, b := newNode(t, p, nil).peer(), newNode(t, p, map[string]string{"extensions": "false"}).peer()
	join(a, b)
	n, err := a.qp.PostSend([]hw.SendWR{{Op: hw.OpWriteImm}})
	assert.Zero(t, n)
	assert.ErrorIs(t, err, hw.ErrModelNotSupported)
}

func TestASendInvalidatesTheRemoteKeyAndNoOther(t *testing.T) {
	a, b := pair(t, nil)
	src, dst := a.memory(8, hw.AllPrivileges), b.memory(8, hw.AllPrivileges)
	b.recv()
	b.recv(dst.sge(0, 8))
	a.post(
		hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: dst.RKey()},
		hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{src.sge(0, 8)}},
	)
	assert.Equal(t, hw.WC{Op: hw.OpRecvInvalidate, Flags: hw.WCInvalidated, Imm: dst.RKey()}, b.received(0))
	assert.Equal(t, hw.OpSend, a.sent(0).Op)
	assert.Equal(t, hw.StatusSuccess, b.received(1).Status, "the local key lives")
	a.post(hw.SendWR{Op: hw.OpRead, SGL: []hw.SGE{src.sge(0, 8)}, RKey: dst.RKey(), RemoteAddr: dst.base})
	assert.Equal(t, hw.StatusRemoteAccess, a.sent(1).Status)
	assert.NoError(t, dst.Deregister())
}

// otherWays are configurations with the caller's own connections.
func otherWays(t testing.TB) map[string]Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"godat"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	server := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	client := &tls.Config{RootCAs: pool, ServerName: "godat"}
	return map[string]Config{
		"TLS": {
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				d := tls.Dialer{Config: client}
				return d.DialContext(ctx, "tcp", addr)
			},
			Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, server) },
		},
		"a unix socket": {
			Dial: func(ctx context.Context, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", path)
			},
			Listen: func(string) (net.Listener, error) { return net.Listen("unix", path) },
		},
		"a pipe": (&pipes{}).config(),
		"TCP without halves": {
			Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				var d net.Dialer
				c, err := d.DialContext(ctx, "tcp", addr)
				return wholeConn{c}, err
			},
			Listen: func(addr string) (net.Listener, error) {
				l, err := net.Listen("tcp", addr)
				return wholeListener{l}, err
			},
		},
	}
}

// wholeConn is a connection that shows no way to close half of it.
type wholeConn struct{ net.Conn }

type wholeListener struct{ net.Listener }

func (l wholeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wholeConn{c}, nil
}

func TestAnyNetConnCarriesAConnection(t *testing.T) {
	for name, cfg := range otherWays(t) {
		t.Run(name, func(t *testing.T) {
			const size = 1 << 20
			p := New(cfg)
			na, nb := newNode(t, p, nil), newNode(t, p, nil)
			a, b := na.peer(), nb.peer()
			near, far := na.memory(size, hw.AllPrivileges), nb.memory(size, hw.AllPrivileges)
			for i := range near.buf {
				near.buf[i] = byte(i * 11)
			}
			b.recv(far.sge(0, size))
			join(a, b)
			a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{near.sge(0, size)}})
			require.Equal(t, uint32(size), b.received(0).Len)
			require.Equal(t, near.buf, far.buf)
			clear(near.buf)
			a.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{near.sge(0, size)}, RKey: far.RKey(), RemoteAddr: far.base})
			require.Equal(t, hw.StatusSuccess, a.sent(0).Status)
			require.Equal(t, near.buf, far.buf)
			a.qp.Drain()
			a.awaitDown()
			require.Equal(t, hw.ReasonDrained, a.down)
			b.awaitDown()
			require.Equal(t, hw.ReasonPeer, b.down)
		})
	}
}

// The socket fills up, because the peer reads nothing.
func TestAPeerThatTakesNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, New(Config{}), map[string]string{"crc": "false", "stall": "50ms", "linger": "10ms"})
	a, m := n.peer(), n.memory(16<<20, hw.LocalRead)
	scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 16<<20)}, RKey: 1})
	a.awaitDown()
	assert.Equal(t, hw.ReasonBroken, a.down)
	assert.Equal(t, hw.StatusFlushed, a.sent(0).Status)
}

// Here, too, the socket fills up.
func TestPostingAndBreakingWaitForNoPeer(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(16<<20, hw.LocalRead)
	scripted(t, a)
	for range 60 {
		a.post(hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{m.sge(0, 16<<20)}, RKey: 1})
	}
	before := time.Now()
	require.NoError(t, m.Deregister())
	clear(m.buf) // the program may write to it again, though half of an FPDU has left
	a.end(true)
	assert.Less(t, time.Since(before), patience/2)
	assert.Len(t, a.sends, 61)
}

func TestADrainThatThePeerAnswersWithATerminateIsBroken(t *testing.T) {
	a := newNode(t, New(Config{}), noCRC).peer()
	s := scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpSend})
	a.qp.Drain()
	s.next()
	s.eof()
	s.write(wire.AppendFPDU(nil, false, terminate(wire.TermUntaggedNoBuffer, nil, 0)))
	a.awaitDown()
	assert.Equal(t, hw.ReasonBroken, a.down)
}

func TestADrainDoesNotWaitForeverForThePeersEnd(t *testing.T) {
	t.Parallel()
	a := newNode(t, New(Config{}), map[string]string{"crc": "false", "linger": "50ms"}).peer()
	s := scripted(t, a)
	a.qp.Drain()
	s.eof()
	a.awaitDown()
	assert.Equal(t, hw.ReasonDrained, a.down)
}

func TestADrainWaitsForReads(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	a, m := n.peer(), n.memory(8, hw.LocalWrite)
	s := scripted(t, a)
	a.post(hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1})
	a.qp.Drain()
	_, body := s.next()
	s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: binary.BigEndian.Uint32(body)}, make([]byte, 8)))
	assert.Equal(t, hw.StatusSuccess, a.sent(0).Status)
	s.eof()
	_ = s.conn.Close()
	a.awaitDown()
	assert.Equal(t, hw.ReasonDrained, a.down)
}

func TestFPDUsFitTheirLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		params map[string]string
		big    bool
		most   int
	}{
		{"a segment", nil, false, 65536},
		{"as told", map[string]string{"fpdu": "1440"}, true, 1440},
		{"64 KiB", nil, true, wire.FPDUSize(wire.MaxULPDU)},
	} {
		n := newNode(t, New(Config{}), c.params)
		a, m := n.peer(), n.memory(300000, hw.LocalRead)
		_, s := answering(t, a, hw.ConnectConfig{})
		reply := obliging(s.request())
		reply.BigFPDU, s.crc = c.big, true
		s.write(reply.Append(nil))
		a.awaitUp()
		a.post(hw.SendWR{Op: hw.OpSend, SGL: []hw.SGE{m.sge(0, 300000)}})
		for got, last := 0, false; !last; {
			h, body := s.next()
			require.Equal(t, uint32(got), h.MO)
			size := wire.FPDUSize(len(body) + wire.UntaggedHeaderSize)
			require.LessOrEqual(t, size, c.most, c.name)
			got, last = got+len(body), h.Last
			if last {
				require.Equal(t, 300000, got)
			}
		}
	}
}

func TestTheDataPathAllocatesNothing(t *testing.T) {
	if owner.Enabled {
		return // the race build's checks allocate
	}
	for name, params := range map[string]map[string]string{"raw": nil, "markers": {"markers": "true"}, "a socket that is full": {"buffer": "32768"}} {
		x, y, sends, recvs := counted(t, New(Config{}), params, 64)
		src, dst := x.memory(100000, hw.AllPrivileges), y.memory(100000, hw.AllPrivileges)
		in := []hw.RecvWR{{SGL: []hw.SGE{dst.sge(0, 100000)}}}
		out := []hw.SendWR{
			{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, 100000)}, RKey: dst.RKey(), RemoteAddr: dst.base},
			{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, 50000)}, RKey: dst.RKey(), RemoteAddr: dst.base},
			{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{src.sge(0, 64), src.sge(64, 2000)}},
		}
		n := int64(0)
		step := func() {
			n++
			_, _ = y.qp.PostRecv(in)
			_, _ = x.qp.PostSend(out)
			sends.until(3 * n)
			recvs.until(n)
		}
		for range 100 {
			step()
		}
		assert.Less(t, testing.AllocsPerRun(200, step), 1.0, name)
	}
}

func TestAPeerThatStopsInTheMiddleOfAnFPDUIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 10, 30000} { // the last is read directly
		n := newNode(t, New(Config{}), map[string]string{"crc": "false", "stall": "20ms", "linger": "10ms"})
		b, m := n.peer(), n.memory(30000, hw.LocalWrite)
		b.recv(m.sge(0, 30000))
		s, _ := accepted(t, b, plain())
		b.awaitUp()
		one := fpdu(false, sendHeader, make([]byte, size))
		s.write(one[:len(one)/2])
		b.awaitDown()
		assert.Equal(t, hw.ReasonBroken, b.down)
		assert.Equal(t, hw.StatusFlushed, b.received(0).Status)
	}
}

// inParts writes b in parts, up to each of the ends in turn. New connections to n in
// between give this connection's receiver the time to take each part.
func (s *script) inParts(n *node, b []byte, ends ...int) {
	s.tb.Helper()
	from := 0
	for _, to := range append(ends, len(b)) {
		s.write(b[from:to])
		from = to
		for range 3 {
			accepted(s.tb, n.peer(), plain())
		}
	}
}

// An initiator that promised nothing may begin with any FPDU. With so long a grace only
// that FPDU can show that the initiator is there.
func TestALargeFirstFPDUShowsThatTheInitiatorIsThere(t *testing.T) {
	n := newNode(t, New(Config{}), map[string]string{"crc": "false", "grace": "1h"})
	b, m := n.peer(), n.memory(30000, hw.LocalWrite)
	b.recv(m.sge(0, 30000))
	s, _ := accepted(t, b, plain())
	s.inParts(n, fpdu(false, sendHeader, make([]byte, 30000)), 100)
	b.awaitUp()
	assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
}

// The FIN that ends an orderly drain stands between two FPDUs, never in one.
func TestADrainWhosePeerStopsInTheMiddleOfAnFPDUIsBroken(t *testing.T) {
	for _, size := range []int{100, 30000} { // the larger one is read directly
		n := newNode(t, New(Config{}), noCRC)
		a, m := n.peer(), n.memory(30000, hw.LocalWrite)
		a.recv(m.sge(0, 30000))
		s := scripted(t, a)
		a.qp.Drain()
		s.eof()
		one := fpdu(false, sendHeader, make([]byte, size))
		s.write(one[:len(one)/2])
		require.NoError(t, s.conn.Close())
		a.awaitDown()
		assert.Equal(t, hw.ReasonBroken, a.down, "%d octets", size)
	}
}

// The receive has two empty segments in a row. A read straight into memory stops there,
// and the next one goes on behind them.
func TestEmptySegmentsAreReadPast(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	b, m := n.peer(), n.memory(32<<10, hw.LocalWrite)
	b.recv(m.sge(0, 12<<10), m.sge(0, 0), m.sge(0, 0), m.sge(12<<10, 20<<10))
	s, _ := accepted(t, b, plain())
	b.awaitUp()
	payload := make([]byte, 32<<10)
	for i := range payload {
		payload[i] = byte(i * 7 >> 3)
	}
	s.inParts(n, fpdu(false, sendHeader, payload), 1000, 16<<10)
	assert.Equal(t, hw.StatusSuccess, b.received(0).Status)
	assert.Equal(t, payload, m.buf)
}
