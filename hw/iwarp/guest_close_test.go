//go:build guest

package iwarp

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// The kernel must survive early closes: siw's passive side has crashed it when an
// initiator that had promised a ready-to-receive left early (agreement.go). A kernel
// that crashes ends the guest, and the test with it.

// closer is a C program that accepts connections which the test closes at once.
type closer struct {
	prog  string
	args  []string
	port  uint64
	asked int    // a port where it wants to be asked for its address first, or 0
	count string // the environment variable with the number of connections
	usual int    // the number without the variable
	batch int    // the most connections for one server
}

// cmtime sometimes frees its protection domain while its other thread uses it, and then
// refuses all later connections. dtest takes one connection.
var closers = []closer{
	{"cmtime", []string{"-b", guestAddress, "-p", "7471"}, 7471, 0, "GODAT_GUEST_CLOSES", 200, 50},
	{"dtest", []string{"-P", "siw", "-b", "64", "-B", "4"}, 45248, 15828, "GODAT_GUEST_DTEST_CLOSES", 10, 1},
}

func TestTheKernelOutlivesConnectionsThatCloseAtOnce(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "dat.conf")
	line := `siw u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "eth0 0" ""` + "\n"
	require.NoError(t, os.WriteFile(conf, []byte(line), 0o644))
	t.Setenv("DAT_OVERRIDE", conf)
	for _, c := range closers {
		t.Run(c.prog, func(t *testing.T) {
			want := c.usual
			if s := os.Getenv(c.count); s != "" {
				var err error
				want, err = strconv.Atoi(s)
				require.NoError(t, err)
			}
			n := guestNode(t, map[string]string{"linger": "5s", "mpa": "30s"}, "")
			closed, servers := 0, 0
			for closed < want {
				servers++
				require.Less(t, servers, want+10, "servers that refuse: %d closed", closed)
				closed += c.closeAtOnce(t, n, min(c.batch, want-closed), closed)
			}
			fmt.Printf("%s: %d connections closed at once, of %d servers\n", c.prog, closed, servers)
			kernelIsWell(t)
		})
	}
}

// dtestPrivate is the private data that dtest asks for.
var dtestPrivate = func() (b []byte) {
	for i := range byte(48) {
		b = append(b, i+1)
	}
	return b
}()

// closeAtOnce connects to a server at most so many times, one after another, and closes
// each connection as soon as it is up, every other one without order. It ends early when
// the server refuses a connection, and returns the number closed.
func (c *closer) closeAtOnce(t *testing.T, n *node, most, before int) (closed int) {
	t.Helper()
	cmd := exec.Command(c.prog, c.args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if c.asked != 0 {
		awaitListener(t, cmd, c.asked)
		conn, err := net.Dial("tcp", net.JoinHostPort(guestAddress, strconv.Itoa(c.asked)))
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	awaitListener(t, cmd, int(c.port))
	for closed < most {
		p := n.peer()
		cfg := hw.ConnectConfig{Addr: guestAddress, Qual: c.port, Timeout: patience / 2, Private: dtestPrivate}
		require.NoError(t, p.qp.Connect(cfg))
		p.await("outcome", func() bool { return p.info != nil || p.refused != 0 })
		p.end((before+closed)%2 == 0)
		if p.refused != 0 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			fmt.Printf("%s: %v, %d closed before:\n%.400s\n", c.prog, p.refused, before+closed, said.String())
			return closed
		}
		closed++
	}
	return closed
}

// awaitListener waits until a C program listens at a port: until the kernel knows the
// port, and the program's main thread sleeps until something happens. Inside rdma_listen
// it only sleeps uninterruptibly, and siw may never answer a connection that comes then.
func awaitListener(t *testing.T, program *exec.Cmd, port int) {
	t.Helper()
	listens := fmt.Appendf(nil, ":%04X 00000000:0000 0A", port)
	require.Eventually(t, func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		if !assert.NoError(t, err) || !bytes.Contains(table, listens) {
			return false
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", program.Process.Pid))
		return assert.NoError(t, err) && bytes.Contains(status, []byte("\nState:\tS"))
	}, time.Minute, 20*time.Millisecond)
}

// kernelIsWell fails the test if the kernel's log has errors.
func kernelIsWell(t *testing.T) {
	t.Helper()
	log, err := exec.Command("dmesg").Output()
	require.NoError(t, err)
	for _, word := range []string{"BUG", "WARNING", "Oops", "blocked for more than"} {
		assert.NotContains(t, string(log), word)
	}
}
