//go:build unix

package calls

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/ends"
)

const patience = time.Minute

func TestWhenOneProcessIsKilledTheOtherEndsToo(t *testing.T) {
	for _, name := range []string{overIWARP, onNet, "net/rpc"} {
		for _, server := range []bool{true, false} {
			plan := []group{{Kind: Kind{Size: 64}, Callers: 2}}
			p, err := open(t.Context(), rowOf(t, name), anEnd(), plan)
			require.NoError(t, err)
			failed := make(chan error, 1)
			go func() {
				_, err := p.turn(plan, time.Hour)
				failed <- err
			}()
			victim := p.Client
			if server {
				victim = p.Server
			}
			require.NoError(t, victim.Cmd.Process.Kill())
			for _, end := range []*ends.Process{p.Client, p.Server} {
				select {
				case <-end.Done:
				case <-time.After(patience):
					p.Kill()
					require.Fail(t, "a process lives", "%s: the %s", name, end.What)
				}
			}
			assert.Error(t, <-failed, name)
		}
	}
}

func TestAProcessThatHasStoppedIsKilledAndNamed(t *testing.T) {
	plan := []group{{Kind: Kind{Size: 64}, Callers: 2}}
	p, err := open(t.Context(), rowOf(t, onNet), anEnd(), plan)
	require.NoError(t, err)
	p.Server.Stall = 50 * time.Millisecond
	require.NoError(t, p.Server.Cmd.Process.Signal(syscall.SIGSTOP))
	_, err = p.turn(plan, time.Millisecond)
	require.ErrorContains(t, err, "the server has not answered for 50ms, and was killed")
	<-p.Client.Done // nobody is left for it to call
}

// A port scanner, or a program that has mistaken the port.
func TestAStrangerKeepsNoServerFromItsCallsNorFromItsEnd(t *testing.T) {
	for _, row := range rows() {
		if row.OneProcess {
			continue // nobody else reaches it
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			w := newWork(64)
			s, err := row.serve(w)
			require.NoError(t, err)
			for _, says := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\xff\xfe\xfd\xfc and so on, for more than any header is long"} {
				stranger, err := net.Dial("tcp", s.addr())
				require.NoError(t, err)
				defer stranger.Close() // after the server: it stays
				_, err = stranger.Write([]byte(says))
				require.NoError(t, err)
			}
			plan := []group{{Kind: Kind{Size: 64}, Callers: 2, Enough: 10}}
			c, err := dial(row, s.addr(), plan)
			require.NoError(t, err)
			called, err := c.turn(plan, patience)
			require.NoError(t, err)
			assert.Equal(t, called[0].Calls, w.tally().Calls, "no stranger's bytes are a call")
			require.NoError(t, c.client.close())
			closed := make(chan error, 1)
			go func() { closed <- s.close() }()
			select {
			case err := <-closed:
				assert.NoError(t, err)
			case <-time.After(patience):
				require.Fail(t, "a stranger keeps the server")
			}
		})
	}
}

// aStudy starts a study that would take hours. all is the end of a pipe that it has, and all that it
// started: it is at its end when the last of them is.
func aStudy(t *testing.T) (cmd *exec.Cmd, all *os.File, stdin io.Closer) {
	t.Helper()
	all, to, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, all.Close()) })
	cmd = exec.Command(os.Args[0], "rpc", `{"Sizes":[64],"Callers":16,"Repeats":9,"Only":"net","Duration":3600000000000}`)
	cmd.Stderr = to
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, to.Close())
	require.NoError(t, all.SetReadDeadline(time.Now().Add(patience)))
	from := bufio.NewReader(all)
	for range 2 * 3 { // the ends of a plain server on net, net/http, net/rpc
		line, err := from.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "an end\n", line)
	}
	return cmd, all, stdin
}

func TestAStudyThatEndsLeavesNoProcess(t *testing.T) {
	for name, stop := range map[string]func(cmd *exec.Cmd, stdin io.Closer) error{
		"an interrupt of all": func(cmd *exec.Cmd, _ io.Closer) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) },
		"an interrupt":        func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(os.Interrupt) },
		"a request to end":    func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(syscall.SIGTERM) },
		"a kill":              func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
		"the end of its parent": func(_ *exec.Cmd, stdin io.Closer) error {
			return stdin.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, all, stdin := aStudy(t)
			require.NoError(t, stop(cmd, stdin))
			require.NoError(t, all.SetReadDeadline(time.Now().Add(patience)))
			_, err := io.Copy(io.Discard, all)
			if !assert.NoError(t, err, "a process lives") {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			}
			assert.Error(t, cmd.Wait(), "it has not measured")
		})
	}
}
