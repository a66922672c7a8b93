//go:build guest

package ibv

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw/hwtest"
)

// The tests behind the build tag guest run in the guest that test-guest.sh boots, on
// that guest's device.

// guestDevice is the name of the device that the guest was booted with.
func guestDevice(t testing.TB) string {
	t.Helper()
	name := os.Getenv("GODAT_GUEST_DEVICE")
	require.NotEmpty(t, name, "these tests run in the guest: see test-guest.sh")
	return name
}

func onSIW(t testing.TB) bool { return strings.HasPrefix(guestDevice(t), "siw") }

// gaps are the differences from the contract that the package documents for the device.
func gaps(t testing.TB) hwtest.Gap {
	g := hwtest.ImpliedLocalRead | hwtest.ImpliedLocalWrite
	if onSIW(t) {
		g |= hwtest.EarlyCompletion
	}
	return g
}

// nowhere is an address of the guest's network that no host has.
const nowhere = "10.0.2.99"

// guestAddress6 is the guest's own IPv6 address.
const guestAddress6 = "fec0::15"

func contract(t *testing.T, params map[string]string) {
	t.Helper()
	device := guestDevice(t)
	hwtest.TestProvider(t, hwtest.Config{
		Provider: New(),
		Devices:  [2]string{device, device},
		Params:   params,
		Unknown:  nowhere,
		Gaps:     gaps(t),
		Patience: time.Minute,
		// soft-RoCE completes the target's receive before it answers. If the target's
		// program breaks the queue pair in between, the answer is never sent.
		Overtakes: !onSIW(t),
		// soft-iWARP completes a request with LOC_QP_OP_ERR whatever error TCP gives it.
		EndsUnderSends: onSIW(t),
	})
}

// TestContract runs the whole suite, without inline sends: an inline send has read its
// memory when it is posted, which the suite's cases about freed memory don't expect; see
// TestAnInlineSendHasReadItsMemoryWhenItIsPosted.
func TestContract(t *testing.T) { contract(t, map[string]string{"tail": "on", "inline": "0"}) }

// pairContract runs groups of the suite over queue pairs that connect by exchanged values.
func pairContract(t *testing.T, groups ...string) {
	t.Helper()
	device := guestDevice(t)
	hwtest.TestProvider(t, hwtest.Config{
		Provider: New(), Devices: [2]string{device, device},
		// A silent end takes keepalive to be noticed, and seven times 0.13 s.
		Params: map[string]string{"inline": "0", "keepalive": "200ms", "ack_timeout": "15"},
		Gaps:   gaps(t), Patience: time.Minute, Overtakes: true, Paired: true, Groups: groups,
	})
}

// TestPairs leaves out the groups whose cases do not connect; failure, where the peer is to say
// what it found; and end and series, most of whose many connections break, which takes a second each.
// Of end, a pair can't tell its peer of an orderly Break with a send that waits.
func TestPairs(t *testing.T) {
	if onSIW(t) {
		pairContract(t, "pair") // whose cases find that the device can't
		return
	}
	pairContract(t, "pair", "send", "rdma", "traffic")
}
