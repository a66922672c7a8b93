package iwarp

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

// controls are the congestion controls that a program may choose.
func controls(t *testing.T) []string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	require.NoError(t, err)
	names := strings.Fields(string(b))
	require.NotEmpty(t, names)
	return names
}

// steered dials connections that a congestion control steers.
func steered(t *testing.T, name string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dialTCP(ctx, addr)
		require.NoError(t, err)
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			require.NoError(t, unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name))
		}))
		return conn, nil
	}
}

func TestAWriteGathersLessWhereTCPPaces(t *testing.T) {
	for _, name := range controls(t) {
		for _, procs := range []int{1, 2} {
			n := newNode(t, New(Config{Dial: steered(t, name)}), noCRC)
			n.dev.(*device).procs = procs
			a := n.peer()
			_, s := answering(t, a, hw.ConnectConfig{})
			reply := obliging(s.request())
			s.write(reply.Append(nil))
			a.awaitUp()
			l, want := connections(a)[0], haulFor(procs, name == "bbr")
			assert.Equal(t, want, l.haul, "%s on %d processors", name, procs)
			assert.Equal(t, want.write, l.send.out.most)
		}
	}
}

// The congestion controls of this machine may all be of one kind.
func TestAHaulIsSmallerWhereTCPPaces(t *testing.T) {
	for _, c := range []struct {
		procs         int
		paced         bool
		write, poster uint64
	}{
		{1, false, 1088 << 10, 1152 << 10},
		{2, false, 1088 << 10, 1152 << 10},
		{1, true, 256 << 10, 1152 << 10},
		{2, true, 256 << 10, 256 << 10},
	} {
		h := haulFor(c.procs, c.paced)
		assert.Equal(t, c.write, h.write, "%+v", c)
		assert.EqualValues(t, c.poster, h.budgets[byPoster], "%+v", c)
	}
	assert.False(t, paced(nil))
}
