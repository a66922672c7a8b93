package iwarp

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A peer that takes nothing looks to TCP like a host that is gone, once the time is over in
// which it must acknowledge more. The error must not be taken for a deadline of this end's,
// nor the end of the stream behind it for the peer's.
func TestAHostThatTCPGivesUpHasNotLeftInOrder(t *testing.T) {
	for name, size := range map[string]int{"all octets are in the socket": 128 << 10, "the socket is full": 32 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, New(Config{}), map[string]string{"crc": "false", "keepalive": "300ms", "stall": "1h", "linger": "10ms"})
			b, m := n.peer(), n.memory(size, hw.LocalRead)
			s, _ := accepted(t, b, plain())
			require.NoError(t, s.conn.(*net.TCPConn).SetReadBuffer(4<<10))
			b.awaitUp()
			b.post(hw.SendWR{Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{m.sge(0, size)}, RKey: 1})
			b.awaitDown()
			require.Equal(t, hw.ReasonBroken, b.down)
			assert.ErrorIs(t, b.cause, syscall.ETIMEDOUT)
			assert.Equal(t, hw.LayerTCP, b.cause.Layer)
		})
	}
}

// severed is one end of a pipe. From a moment on, its Write gets an error of the system's, and
// its Read the end of the stream.
type severed struct {
	net.Conn
	far net.Conn
	err atomic.Pointer[error]
}

func (c *severed) Write(b []byte) (int, error) {
	if err := c.err.Load(); err != nil {
		_ = c.far.Close()
		return 0, *err
	}
	return c.Conn.Write(b)
}

func TestTheErrorOfAWriteSaysWhyTheStreamHasEnded(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		want  hw.Reason
	}{
		{syscall.ETIMEDOUT, hw.ReasonBroken},
		{syscall.ECONNRESET, hw.ReasonBroken},
		{syscall.EHOSTUNREACH, hw.ReasonBroken},
		{syscall.EPIPE, hw.ReasonPeer}, // the peer had ended its stream before it reset the connection
	} {
		t.Run(c.errno.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				conn := &severed{Conn: near, far: far}
				a, s := nudgedOver(t, conn, far, map[string]string{"nudge": "1s"})
				s.isWriteOfNothing()
				err := error(&net.OpError{Op: "write", Err: os.NewSyscallError("write", c.errno)})
				conn.err.Store(&err)
				a.awaitDown()
				assert.Equal(t, c.want, a.down)
				if c.want == hw.ReasonBroken {
					assert.ErrorIs(t, a.cause, c.errno)
				}
			})
		})
	}
}

// timedOut is one end of a pipe whose Read finds TCP's time-out behind the end of the stream.
type timedOut struct{ net.Conn }

func (c timedOut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.EOF {
		err = &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}
	}
	return n, err
}

func TestATimeOutOfTCPsIsNoDeadlineOfThisEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		a, s := nudgedOver(t, timedOut{near}, far, map[string]string{"nudge": "1s"})
		s.isWriteOfNothing()
		_ = far.Close()
		a.awaitDown()
		assert.Equal(t, hw.ReasonBroken, a.down)
		assert.ErrorIs(t, a.cause, syscall.ETIMEDOUT)
	})
}
