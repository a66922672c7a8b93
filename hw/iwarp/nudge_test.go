package iwarp

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// nudged connects to a script.
func nudged(t *testing.T, params map[string]string) (a *peer, s *script) {
	near, far := net.Pipe()
	return nudgedOver(t, near, far, params)
}

// nudgedOver connects to a script over the two ends of a pipe.
func nudgedOver(t *testing.T, near, far net.Conn, params map[string]string) (a *peer, s *script) {
	dial := func(context.Context, string) (net.Conn, error) { return near, nil }
	params["crc"], params["linger"] = "false", "1s"
	if params["keepalive"] == "" {
		params["keepalive"] = "0"
	}
	a = newNode(t, New(Config{Dial: dial}), params).peer()
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: "there", Qual: 1}))
	s = newScript(t, far)
	_ = far.SetDeadline(time.Time{})
	reply := obliging(s.request())
	s.write(reply.Append(nil))
	a.awaitUp()
	return a, s
}

func (s *script) isWriteOfNothing() {
	s.tb.Helper()
	h, body := s.next()
	assert.Equal(s.tb, wire.Header{Opcode: wire.OpWrite, Last: true, STag: rtrSTag}, h)
	assert.Empty(s.tb, body)
}

// receivesNothing checks that no octet comes for a day, and ends the connection.
func (s *script) receivesNothing(a *peer) {
	s.tb.Helper()
	_ = s.conn.SetReadDeadline(time.Now().Add(24 * time.Hour))
	n, err := s.conn.Read(make([]byte, 1))
	assert.Zero(s.tb, n)
	assert.True(s.tb, isTimeout(err), "%v", err)
	_ = s.conn.Close()
	a.awaitDown()
}

func TestAPeerOfAnotherKindIsNudgedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := nudged(t, map[string]string{"nudge": "1s"})
		began := time.Now()
		for wait := time.Second; wait <= 64*time.Second; wait *= 2 {
			s.isWriteOfNothing()
			assert.Equal(t, 2*wait-time.Second, time.Since(began))
		}
		s.receivesNothing(a)
	})
}

func TestAPeerThatHasSentIsNudgedNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := nudged(t, map[string]string{"nudge": "1s"})
		a.recv()
		s.isWriteOfNothing()
		s.write(fpdu(false, wire.Header{Opcode: wire.OpSend, Last: true, MSN: 1}))
		assert.Equal(t, hw.StatusSuccess, a.received(0).Status)
		s.receivesNothing(a)
	})
}

func TestNoPeerIsNudgedWhenNudgesAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s := nudged(t, map[string]string{"nudge": "0"})
		s.receivesNothing(a)
	})
}

// A peer of this package misses no octets: the initiator sends it only the
// ready-to-receive.
func TestAPeerOfOurKindIsNotNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := &pipes{}
		cfg := ways.config()
		var wrote writes
		dial := cfg.Dial
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := dial(ctx, addr)
			wrote.Conn = conn
			return &wrote, err
		}
		params := map[string]string{"nudge": "1s", "keepalive": "0"}
		p := New(cfg)
		a, b := newNode(t, p, params).peer(), newNode(t, p, params).peer()
		join(a, b)
		synctest.Wait()
		before := wrote.n
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		assert.Equal(t, before, wrote.n)
		a.qp.Drain()
		a.awaitDown()
	})
}

// writes is a connection that counts what is written to it.
type writes struct {
	net.Conn
	n int
}

func (c *writes) Write(b []byte) (int, error) {
	c.n++
	return c.Conn.Write(b)
}
