package iwarp

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// openOnly opens a device that the test closes.
func openOnly(t *testing.T, cfg Config) *node {
	dev, err := New(cfg).Open(hw.OpenConfig{Device: "127.0.0.1"})
	require.NoError(t, err)
	n := &node{tb: t, dev: dev}
	n.zone, err = dev.NewZone()
	require.NoError(t, err)
	return n
}

// attempt is a queue pair whose attempt to connect has an hour.
func (n *node) attempt() *peer {
	p := n.peer()
	require.NoError(n.tb, p.qp.Connect(hw.ConnectConfig{Addr: "127.0.0.1", Qual: 9, Timeout: time.Hour}))
	return p
}

// tried makes an attempt, which ends after then returns, and closes all but the device.
func (n *node) tried(t *testing.T, then func()) {
	t.Run("attempt", func(t *testing.T) {
		n.tb = t
		n.attempt()
		then()
	})
	require.NoError(t, n.zone.Close())
}

func TestADialThatDoesNotReturnEndsItsAttemptAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		dial func(context.Context, string) (net.Conn, error)
		says string
	}{
		"exits":   {func(context.Context, string) (net.Conn, error) { runtime.Goexit(); return nil, nil }, "iwarp.Config.Dial ended its goroutine"},
		"panics":  {func(context.Context, string) (net.Conn, error) { panic("my mistake") }, "iwarp.Config.Dial panicked: my mistake"},
		"nothing": {func(context.Context, string) (net.Conn, error) { return nil, nil }, "neither a connection nor an error"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newNode(t, New(Config{Dial: c.dial}), nil).attempt()
			p.await("refusal", func() bool { return p.refused != 0 })
			assert.Equal(t, hw.ReasonUnreachable, p.refused)
			assert.ErrorContains(t, p.cause, c.says)
			if name == "panics" {
				assert.ErrorContains(t, errors.Unwrap(errors.Unwrap(p.cause)), "hook_test.go", "the stack")
			}
		})
	}
}

func TestACloseGoesOnWithoutADialThatBlocks(t *testing.T) {
	entered, goOn := make(chan struct{}), make(chan struct{})
	late, other := net.Pipe()
	n := openOnly(t, Config{Params: map[string]string{"linger": "1ms"}, Dial: func(context.Context, string) (net.Conn, error) {
		close(entered)
		<-goOn
		return late, nil
	}})
	n.dev.(*device).hookTime = time.Millisecond
	n.tried(t, func() { <-entered })
	for range 2 {
		require.ErrorContains(t, n.dev.Close(), "iwarp.Config.Dial has not returned in 1ms")
	}
	close(goOn)
	_, err := other.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "a connection that came too late is closed")
	require.Eventually(t, func() bool { return n.dev.Close() == nil }, patience, time.Millisecond)
	require.ErrorIs(t, n.dev.Close(), hw.ErrInvalidHandle, "it is closed already")
}

func TestADialMayCloseTheDevice(t *testing.T) {
	closed := make(chan error)
	var n *node
	shut := make(chan struct{})
	n = openOnly(t, Config{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		<-shut
		closed <- n.dev.Close()
		return nil, ctx.Err()
	}, Params: map[string]string{"linger": "1ms"}})
	n.tried(t, func() {})
	close(shut)
	require.NoError(t, <-closed)
}

func TestAListenThatDoesNotReturnFailsAndLeavesNothingOpen(t *testing.T) {
	for name, c := range map[string]struct {
		listen func(string) (net.Listener, error)
		says   string
	}{
		"exits":   {func(string) (net.Listener, error) { runtime.Goexit(); return nil, nil }, "iwarp.Config.Listen ended its goroutine"},
		"panics":  {func(string) (net.Listener, error) { panic("my mistake") }, "iwarp.Config.Listen panicked: my mistake"},
		"nothing": {func(string) (net.Listener, error) { return nil, nil }, "neither a listener nor an error"},
	} {
		t.Run(name, func(t *testing.T) {
			n := openOnly(t, Config{Listen: c.listen})
			_, err := n.dev.Listen(hw.ListenConfig{OnRequest: func(hw.Request) bool { return false }})
			require.ErrorContains(t, err, c.says)
			require.NoError(t, n.zone.Close())
			require.NoError(t, n.dev.Close())
		})
	}
}

func TestAListenThatBlocksHoldsNobodyForEver(t *testing.T) {
	goOn, opened := make(chan struct{}), make(chan net.Listener, 1)
	n := openOnly(t, Config{Listen: func(string) (net.Listener, error) {
		<-goOn
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		opened <- ln
		return ln, err
	}})
	n.dev.(*device).hookTime = time.Millisecond
	_, err := n.dev.Listen(hw.ListenConfig{OnRequest: func(hw.Request) bool { return false }})
	require.ErrorContains(t, err, "iwarp.Config.Listen has not returned")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, n.zone.Close())
	require.ErrorContains(t, n.dev.Close(), "iwarp.Config.Listen has not returned in 1ms")
	close(goOn)
	_, err = (<-opened).Accept()
	require.ErrorIs(t, err, net.ErrClosed, "a listener that came too late is closed")
	require.Eventually(t, func() bool { return n.dev.Close() == nil }, patience, time.Millisecond)
}
