//go:build unix

package iwarp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// asPeer is the environment variable that makes a test binary the peer of another one.
const asPeer = "GODAT_TEST_IWARP_PEER"

func init() {
	if os.Getenv(asPeer) != "" {
		serveAPeer()
	}
}

// serveAPeer accepts a connection, and keeps it until its standard input ends.
func serveAPeer() {
	n := newNode(child{}, New(Config{}), nil)
	p := n.peer()
	ln, requests := n.listen(hw.ListenConfig{})
	fmt.Println(ln.Qual())
	require.NoError(n.tb, (<-requests).Accept(p.qp, nil))
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// child is the tester of a peer process, which reports a failure by its exit.
type child struct{}

func (child) Helper()                           {}
func (child) Cleanup(func())                    {}
func (child) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (child) FailNow()                          { os.Exit(1) }

func (c child) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	c.FailNow()
}

// The kernel of a process that is stopped answers TCP's keep-alive for it.
func TestAPeerWhoseProcessIsStoppedIsNoticed(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asPeer+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	require.NoError(t, err)

	a := newNode(t, New(Config{}), map[string]string{"keepalive": "200ms", "linger": "10ms"}).peer()
	a.recv()
	require.NoError(t, a.qp.Connect(hw.ConnectConfig{Addr: "127.0.0.1", Qual: port}))
	a.awaitUp()
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	a.awaitDown()
	assert.Equal(t, hw.ReasonBroken, a.down)
	assert.Equal(t, hw.StatusFlushed, a.received(0).Status)
	if runtime.GOOS == "linux" { // others do not tell
		assert.ErrorContains(t, a.cause, "TCP acknowledges, so its process is stopped or stuck")
	}
	assert.Less(t, len(a.cause.Error()), 300)
}
