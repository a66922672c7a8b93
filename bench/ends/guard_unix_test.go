//go:build unix

package ends

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain is a process with a guard, too: it says that it has one, and at the end of its input whether that was stopped in time.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "guarded" {
		g := newGuard(4*look, func() {})
		fmt.Println("guarded")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		fmt.Println(g.stop())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestAGuardCallsWhenItIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Bool
		g := newGuard(3500*time.Millisecond, func() { called.Store(true) })
		time.Sleep(3400 * time.Millisecond)
		synctest.Wait()
		require.False(t, called.Load())
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.True(t, called.Load())
		assert.False(t, g.stop())

		g = newGuard(time.Minute, t.FailNow)
		assert.True(t, g.stop())
		time.Sleep(time.Hour)
	})
}

func TestAPauseOfTheProcessIsNotLate(t *testing.T) {
	cmd := exec.Command(os.Args[0], "guarded")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "guarded\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(9 * look / 2)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	<-time.After(look / 2) // a timer of the whole time has ended by then
	_, err = in.Write([]byte{0})
	require.NoError(t, err)
	line, err = said.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "true\n", line)
	require.NoError(t, cmd.Wait())
}
