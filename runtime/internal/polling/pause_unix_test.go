//go:build unix

package polling

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that runs the tests of lost wake-ups is stopped again and again, wherever it is. They hang if a
// completion is left behind.
func TestNoWakeUpIsLostInAProcessThatIsPaused(t *testing.T) {
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.short",
		"-test.run=^(TestNoWakeUpIsLost|TestNothingIsLostWhenConsumersPollNowAndThen)$")
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for pauses := 0; ; pauses++ {
		wait := func(most time.Duration) bool {
			select {
			case err := <-ended:
				require.NoError(t, err, said.String())
				return true
			case <-time.After(rand.N(most)):
				return false
			}
		}
		if wait(4 * time.Millisecond) {
			require.Positive(t, pauses)
			return
		}
		if cmd.Process.Signal(syscall.SIGSTOP) == nil {
			over := wait(8 * time.Millisecond)
			_ = cmd.Process.Signal(syscall.SIGCONT)
			if over {
				return
			}
		}
	}
}
