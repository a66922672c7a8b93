package iwarp

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// narrow is a connection that gives its reader some 400 KB a second.
type narrow struct{ *net.TCPConn }

func (c narrow) Read(b []byte) (int, error) {
	<-time.After(20 * time.Millisecond)
	return c.TCPConn.Read(b[:min(len(b), 8<<10)])
}

// narrowed is a script behind a slow link, which b has accepted.
func narrowed(t *testing.T, b *peer) *script {
	s, _ := accepted(t, b, plain())
	tcp := s.conn.(*net.TCPConn)
	require.NoError(t, tcp.SetReadBuffer(16<<10))
	_ = tcp.SetDeadline(time.Time{})
	s.conn = narrow{tcp}
	b.awaitUp()
	return s
}

// A read stands behind all that the socket has taken, which the peer's system acknowledges for
// several times the time keepalive.
func TestAPeerBehindASlowLinkIsNotDeadWhileItsSystemAcknowledges(t *testing.T) {
	t.Parallel()
	const size = 512 << 10
	n := newNode(t, New(Config{}), map[string]string{"crc": "false", "keepalive": "400ms", "stall": "1h", "buffer": "1048576"})
	b, m := n.peer(), n.memory(size, hw.LocalRead|hw.LocalWrite)
	s := narrowed(t, b)
	began := time.Now()
	b.post(
		hw.SendWR{Op: hw.OpWrite, SGL: []hw.SGE{m.sge(0, size)}, RKey: 1},
		hw.SendWR{Op: hw.OpRead, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, 8)}, RKey: 1},
	)
	for {
		h, body := s.next()
		if h.Opcode != wire.OpReadRequest {
			continue
		}
		var r wire.ReadRequest
		_, err := r.Parse(body)
		require.NoError(t, err)
		s.write(fpdu(false, wire.Header{Opcode: wire.OpReadResponse, Last: true, STag: r.SinkSTag, TO: r.SinkTO}, []byte("response")))
		break
	}
	assert.Greater(t, time.Since(began), 800*time.Millisecond, "the link is slow")
	assert.Equal(t, hw.StatusSuccess, b.sent(0).Status)
	_ = s.conn.Close()
}

// The system says that a socket has room when a third of it is free, which a slow peer takes
// longer for than the time stall.
func TestAPeerThatTakesLittleHasNotStalled(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	n := newNode(t, New(Config{}), map[string]string{"crc": "false", "keepalive": "0", "stall": "400ms", "linger": "10ms", "buffer": "1048576"})
	b, m := n.peer(), n.memory(size, hw.LocalRead)
	s := narrowed(t, b)
	b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, size)}, RKey: 1})
	_, err := io.CopyN(io.Discard, s.conn, 800<<10)
	require.NoError(t, err)
	b.mu.Lock()
	assert.Zero(t, b.down)
	b.mu.Unlock()
	b.awaitDown() // the peer reads nothing any more
	assert.ErrorContains(t, b.cause, "the peer took nothing for")
	assert.ErrorIs(t, b.cause, hw.ErrTimeout)
	_ = s.conn.Close()
}
