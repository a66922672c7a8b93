//go:build unix

package iwarp

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

// hoard takes all descriptors that the process may have, after it has lowered their
// number. The end of the test gives them back.
func hoard(t *testing.T) (files []*os.File) {
	t.Helper()
	var was unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	low := was
	low.Cur = min(was.Cur, 256)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	closeDropped(t)
	t.Cleanup(func() {
		assert.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		for _, f := range files {
			_ = f.Close()
		}
	})
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			return files
		}
		files = append(files, f)
	}
}

// closeDropped waits until the files that earlier tests have dropped are closed, so that
// none of them is closed during the test. The collector hands their finalizers to one
// goroutine, which takes those that wait and runs them in any order. So what the first
// round's finalizer did not wait for has run before the second one's.
func closeDropped(t *testing.T) {
	t.Helper()
	for range 2 {
		ran := make(chan struct{})
		runtime.SetFinalizer(&struct{ self *testing.T }{t}, func(any) { close(ran) })
		runtime.GC()
		await(t, ran)
	}
}

// await receives from a channel within the time of a test's patience.
func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	return v
}

func TestAListenerWithoutADescriptorRefusesItsPeersAtOnceAndRecovers(t *testing.T) {
	n := newNode(t, New(Config{}), nil)
	dropped := make(chan *hw.Cause, 64)
	ln, requests := n.listen(hw.ListenConfig{OnDrop: func(c *hw.Cause) { dropped <- c }})
	files := hoard(t)
	for range 3 { // each peer has the descriptor that its socket needs, and leaves none to the listener
		f := files[len(files)-1]
		files = files[:len(files)-1]
		require.NoError(t, f.Close())
		s := dialScript(t, ln)
		s.eof()
		c := await(t, dropped)
		require.ErrorIs(t, c, syscall.EMFILE)
		require.ErrorContains(t, c, "ulimit -n")
		assert.Equal(t, s.conn.LocalAddr().String(), c.Remote.String())
		_ = s.conn.Close()
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		files = append(files, f)
	}
	for _, f := range files {
		require.NoError(t, f.Close())
	}
	s := dialScript(t, ln)
	s.ask()
	require.NoError(t, await(t, requests).Reject([]byte("no")))
	assert.Equal(t, "no", string(s.reply().Private))
	assert.Empty(t, dropped)
}

// counting is a listener that counts how often Accept is called.
type counting struct {
	*net.TCPListener
	accepts atomic.Int32
}

func (c *counting) Accept() (net.Conn, error) {
	c.accepts.Add(1)
	return c.TCPListener.Accept()
}

// A listener that finds no descriptor keeps its spare until a peer waits: nobody else can take
// its place before.
func TestAListenerKeepsItsSpareDescriptorUntilAPeerWaits(t *testing.T) {
	if !haveRaw {
		return // the listener can't tell whether a peer waits
	}
	var c counting
	n := newNode(t, New(Config{Listen: func(addr string) (net.Listener, error) {
		ln, err := net.Listen("tcp", addr)
		if err == nil {
			c.TCPListener = ln.(*net.TCPListener)
		}
		return &c, err
	}}), nil)
	dropped := make(chan *hw.Cause, 64)
	ln, _ := n.listen(hw.ListenConfig{OnDrop: func(c *hw.Cause) { dropped <- c }})
	files := hoard(t)
	for range 3 {
		require.NoError(t, files[len(files)-1].Close())
		s := dialScript(t, ln)
		s.eof()
		require.ErrorIs(t, await(t, dropped), syscall.EMFILE)
		tried := c.accepts.Load()
		// The peer keeps its descriptor meanwhile: an accept that found one would wait for a peer.
		require.Eventually(t, func() bool { return c.accepts.Load() >= tried+3 }, patience, tick, "it finds no descriptor, again and again")
		_, err := os.Open(os.DevNull)
		require.ErrorIs(t, err, syscall.EMFILE, "it has kept the spare")
		_ = s.conn.Close()
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		files[len(files)-1] = f
	}
}

// failing is a listener whose accepts fail as long as broken is set.
type failing struct {
	net.Listener
	mu     sync.Mutex
	broken error
	failed int
}

func (f *failing) Accept() (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		f.failed++
		return nil, f.broken
	}
	return f.Listener.Accept()
}

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = err
}

func TestAnAcceptThatKeepsFailingIsReportedOnceAndTriedAgain(t *testing.T) {
	broken := &failing{broken: errors.New("no memory for a socket")}
	n := newNode(t, New(Config{Listen: func(addr string) (net.Listener, error) {
		ln, err := net.Listen("tcp", addr)
		broken.Listener = ln
		return broken, err
	}}), nil)
	dropped := make(chan *hw.Cause, 64)
	ln, requests := n.listen(hw.ListenConfig{OnDrop: func(c *hw.Cause) { dropped <- c }})
	require.Eventually(t, func() bool {
		broken.mu.Lock()
		defer broken.mu.Unlock()
		return broken.failed > 2
	}, patience, time.Millisecond)
	c := await(t, dropped)
	assert.True(t, strings.HasPrefix(c.Error(), "TCP: no memory for a socket"), "%v", c)
	assert.Equal(t, ln.Addr(), c.Local)
	assert.Empty(t, dropped)
	broken.set(nil)
	s := dialScript(t, ln)
	s.ask()
	require.NoError(t, await(t, requests).Reject(nil))
	assert.True(t, s.reply().Reject)
}

func TestACauseWithoutADescriptorNamesTheLimitToRaise(t *testing.T) {
	err := &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	c := dialCause(err)
	require.ErrorIs(t, c, syscall.EMFILE)
	assert.Equal(t, "TCP: socket: too many open files (ulimit -n) (24), found here", c.Error())
}
