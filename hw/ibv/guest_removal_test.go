//go:build guest

package ibv

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// ruin is the environment variable of a process that runs one of the tests ruinous,
// which leave the guest's device unusable.
const (
	ruin    = "GODAT_GUEST_RUIN"
	ruinous = "^TestLinkThatGoesDown|^TestDeviceThatIsRemoved"
)

// TestDeviceThatIsRemovedIsReportedAndNothingIsLost leaves the guest without a device.
// The drivers in software delay the removal until no process has the device open, and
// librdmacm opens it for itself and keeps it open as long as the process lives. So the
// test can't see the device disappear: test-guest.sh checks that after the process.
func TestDeviceThatIsRemovedIsReportedAndNothingIsLost(t *testing.T) {
	b := newFaultBench(t, 0)
	a, peer := b.ends[0], b.ends[1]
	idle := b.open(tailed, nil) // has no connection whose end could show the removal
	a.load(peer.target())
	remove := exec.Command("rdma", "link", "delete", guestDevice(t))
	remove.Stdout, remove.Stderr = os.Stdout, os.Stderr
	require.NoError(t, remove.Start())
	for _, e := range []*benchEnd{a, peer, idle} {
		e.awaitAsync(hw.AsyncDeviceFatal)
	}
	for _, e := range b.ends {
		e.until("Down", func() bool { return e.down != hw.ReasonNone })
		assert.Equal(t, hw.ReasonBroken, e.down)
	}
	idle.shut()
	peer.qp.Break(false)
	a.struck()
	peer.ended(0, 0)
	peer.shut()
}
