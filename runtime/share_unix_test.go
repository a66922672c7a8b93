//go:build unix

package runtime

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

// A process that exchanges messages is stopped again and again, wherever it is.
func TestAllArrivesInAProcessThatIsPaused(t *testing.T) {
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.short",
		"-test.run=^(TestEachBurstArrivesHoweverLongThePauseBeforeIt|TestAConsumerThatPollsAndThenBlocksHoldsUpNobodyElse)$")
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pauses := 0
	for timer := time.NewTimer(0); ; timer.Reset(rand.N(8 * time.Millisecond)) {
		select {
		case err := <-ended:
			require.NoError(t, err, said.String())
			require.Positive(t, pauses)
			return
		case <-timer.C:
		}
		signal := syscall.SIGSTOP
		if pauses++; pauses%2 == 0 {
			signal = syscall.SIGCONT
		}
		_ = cmd.Process.Signal(signal)
	}
}
