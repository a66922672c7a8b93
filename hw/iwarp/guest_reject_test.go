//go:build guest

package iwarp

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

const rejecterPort = 7472

// hw/ibv has a test of the same name, for the same C program.
func TestTheRejectOfACProgramIsReportedAsItsConsumers(t *testing.T) {
	for _, data := range []string{"", "no room"} {
		t.Run("with data "+data, func(t *testing.T) {
			args := []string{guestAddress, "7472"}
			if data != "" {
				args = append(args, data)
			}
			cmd := exec.Command(os.Getenv("GODAT_GUEST_REJECTER"), args...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			awaitListener(t, cmd, rejecterPort)
			p := guestNode(t, nil, "").peer()
			require.NoError(t, p.qp.Connect(hw.ConnectConfig{Addr: guestAddress, Qual: rejecterPort}))
			p.await("refusal", func() bool { return p.refused != 0 })
			assert.Equal(t, hw.ReasonPeerRejected, p.refused)
		})
	}
}
