package iwarp

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

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

// congestion is the congestion control of a connection.
func congestion(t *testing.T, tcp *net.TCPConn) (name string) {
	raw, err := tcp.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		name, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		require.NoError(t, err)
	}))
	return strings.TrimRight(name, "\x00")
}

func TestNothingIsPacedWithinAHost(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	allowed := controls(t)
	for _, name := range allowed {
		dial := steered(t, name)
		tuned := func(p hw.Provider, params map[string]string) string {
			conn, err := dial(t.Context(), ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			newNode(t, p, params).dev.(*device).tune(conn)
			return congestion(t, conn.(*net.TCPConn))
		}
		want := name
		if name == "bbr" {
			want = "reno"
		}
		assert.Equal(t, want, tuned(New(Config{}), nil))
		assert.Equal(t, name, tuned(New(Config{Dial: dial}), nil), "a connection of the program's")
		for _, asked := range allowed {
			assert.Equal(t, asked, tuned(New(Config{}), map[string]string{"congestion": asked}))
			assert.Equal(t, asked, tuned(New(Config{Dial: dial}), map[string]string{"congestion": asked}))
		}
	}
}

func TestACongestionControlThatCannotBeIsRefused(t *testing.T) {
	_, err := New(Config{}).Open(hw.OpenConfig{Params: map[string]string{"congestion": "none"}})
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.ErrorIs(t, err, unix.ENOENT)
	assert.ErrorContains(t, err, "tcp_allowed_congestion_control")
}

func TestWhoIsOnTheSameHost(t *testing.T) {
	for _, c := range []struct {
		local, remote string
		same          bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", true},
		{"::1", "::1", true},
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"2001:db8::1", "2001:db8::1", true},
		{"2001:db8::1", "2001:db8::2", false},
	} {
		addr := func(s string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(s), Port: 1} }
		assert.Equal(t, c.same, sameHost(addr(c.local), addr(c.remote)), "%+v", c)
	}
	assert.False(t, sameHost(nil, nil))
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

// keepAliveOf is what TCP does to find out whether a connection's peer is there.
type keepAliveOf struct {
	on             bool
	idle, interval time.Duration
	unacked        time.Duration
}

func keepAliveNow(t *testing.T, conn net.Conn) (k keepAliveOf) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		get := func(level, option int, unit time.Duration) time.Duration {
			v, err := unix.GetsockoptInt(int(fd), level, option)
			require.NoError(t, err)
			return time.Duration(v) * unit
		}
		k.on = get(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1) != 0
		k.idle = get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, time.Second)
		k.interval = get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, time.Second)
		k.unacked = get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, time.Millisecond)
	}))
	return k
}

// unackedIsOurs says why TCP has no bound for octets that are not acknowledged.
const unackedIsOurs = "TCP's bound would go on while both ends are paused; the receiver's looks have its place"

// A peer of another kind is not probed, so TCP alone finds that its host is gone.
func TestTCPFindsAHostThatIsGoneWithinTheKeepAlive(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	tuned := func(d net.Dialer, keepalive string) (before, after keepAliveOf) {
		conn, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		before = keepAliveNow(t, conn)
		newNode(t, New(Config{}), map[string]string{"keepalive": keepalive}).dev.(*device).tune(conn)
		return before, keepAliveNow(t, conn)
	}
	_, got := tuned(net.Dialer{}, "30s")
	assert.Equal(t, keepAliveOf{true, 10 * time.Second, 5 * time.Second, 0}, got, unackedIsOurs)
	_, got = tuned(net.Dialer{}, "1s")
	assert.Equal(t, keepAliveOf{true, time.Second, time.Second, 0}, got, "TCP counts in seconds")
	_, got = tuned(net.Dialer{KeepAlive: -1}, "30s")
	assert.True(t, got.on)

	before, got := tuned(net.Dialer{}, "0")
	assert.True(t, got.on, "the parameter 0 leaves TCP's own keep-alive on")
	assert.Equal(t, before, got)
	before, got = tuned(net.Dialer{KeepAlive: -1}, "0")
	assert.False(t, got.on, "as the program has set it")
	assert.Equal(t, before, got)
}

func TestWhatTCPKnowsTellsACutNetworkFromAStoppedProcess(t *testing.T) {
	for name, c := range map[string]struct {
		info unix.TCPInfo
		want heard
		says string
	}{
		"all is acknowledged":           {unix.TCPInfo{}, isThere, "its process is stopped or stuck, or, if its page answers"},
		"a moment behind a send":        {unix.TCPInfo{Unacked: 1}, isUnknown, "stopped or stuck, or its host or the network between"},
		"sent again and again":          {unix.TCPInfo{Unacked: 1, Retransmits: 5}, isLost, "the network between is cut, or its host is down"},
		"full, and asked for room":      {unix.TCPInfo{Probes: 1}, isUnknown, "if its page answers, it is the network"},
		"full, and asked again in vain": {unix.TCPInfo{Probes: 3}, isLost, "if its page answers, it is the network"},
	} {
		assert.Equal(t, c.want, heardBy(&c.info), name)
		assert.Contains(t, c.want.who(), c.says, name)
		assert.Less(t, len(c.want.who()), 170, name)
	}
}
