//go:build guest

package ibv

import (
	"bufio"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// rejecter is the C program of check/guest/testdata, which rejects requests.
var rejecter = os.Getenv("GODAT_GUEST_REJECTER")

const rejecterPort = 7472

// hw/iwarp has a test of the same name, for the same C program.
func TestTheRejectOfACProgramIsReportedAsItsConsumers(t *testing.T) {
	require.NotEmpty(t, rejecter, "test-guest.sh builds it")
	for _, data := range []string{"", "no room"} {
		t.Run("with data "+data, func(t *testing.T) {
			b := &bench{t: t}
			e := b.open(nil, nil)
			b.ends[0], b.ends[1] = e, b.open(nil, nil)
			t.Cleanup(b.close)
			args := []string{e.dev.Attr().Address, "7472"}
			if data != "" {
				args = append(args, data)
			}
			cmd := exec.Command(rejecter, args...)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			cmd.Stderr = os.Stderr
			require.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			said, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "listening\n", said)
			require.NoError(t, e.qp.Connect(hw.ConnectConfig{Addr: e.dev.Attr().Address, Qual: rejecterPort}))
			e.until("Refused", func() bool { return e.refused != 0 })
			assert.Equal(t, hw.ReasonPeerRejected, e.refused)
		})
	}
}
