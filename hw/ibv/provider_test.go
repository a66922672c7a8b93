package ibv

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestProviderIsRegistered(t *testing.T) {
	p, ok := hw.Lookup("ibv")
	require.True(t, ok)
	assert.Equal(t, "ibv", p.Name())
}

func TestOpenSaysInOneSentenceWhatIsMissing(t *testing.T) {
	_, err := New().Open(hw.OpenConfig{Device: "no-such-device"})
	require.ErrorIs(t, err, hw.ErrProviderNotFound)
	text := err.Error()
	assert.NotContains(t, text, "\n")
	hints := []string{
		"CGO_ENABLED=1",                 // built without cgo
		"RDMA devices need Linux",       // another system
		"install the RDMA libraries",    // no library
		"load the kernel modules",       // no connection manager
		"there is no RDMA device:",      // no device
		`no RDMA device "no-such-dev`,   // no device of this name
		"give this user access to /dev", // no permission
	}
	found := false
	for _, h := range hints {
		found = found || strings.Contains(text, h)
	}
	assert.True(t, found, text)
}

func TestOpenRefusesParametersThatItDoesNotKnow(t *testing.T) {
	for k, v := range map[string]string{
		"color": "red", "address": "nowhere", "tail": "long", "inline": "-1", "ack_timeout": "32", "port": "0", "windows": "yes",
	} {
		_, err := New().Open(hw.OpenConfig{Params: map[string]string{k: v}})
		require.ErrorIs(t, err, hw.ErrInvalidParameter, k)
		require.ErrorContains(t, err, k)
	}
}

func TestAnUnknownParameterIsRefusedInWhateverOrderTheParametersCome(t *testing.T) {
	for range 50 { // a map's order is random
		_, err := parseParams(map[string]string{"mtu": "1024", "pkey": "0xffff", "gid": "3", "color": "red"})
		require.ErrorContains(t, err, `unknown parameter "color"`)
	}
}

func TestParametersAreRead(t *testing.T) {
	p, err := parseParams(map[string]string{
		"address": "10.0.2.15", "tail": "off", "inline": "0", "ack_timeout": "14", "port": "2", "windows": "on",
	})
	require.NoError(t, err)
	assert.Equal(t, "10.0.2.15", p.address.String())
	assert.Equal(t, tailOff, p.tail)
	assert.Zero(t, p.inline)
	assert.Equal(t, 14, p.ackTimeout)
	assert.Equal(t, 2, p.port)
	assert.True(t, p.windows)

	p, err = parseParams(nil)
	require.NoError(t, err)
	assert.False(t, p.address.IsValid())
	assert.Equal(t, tailAuto, p.tail)
	assert.Equal(t, defaultInline, p.inline)
	assert.False(t, p.windows)
}

func TestStatusTablesTranslateVerbsStatuses(t *testing.T) {
	sends, recvs := statusTable(false), statusTable(true)
	for verbs, want := range map[int]hw.Status{
		0: hw.StatusSuccess, 1: hw.StatusLocalLength, 2: hw.StatusLocalEP, 4: hw.StatusLocalProtection, 5: hw.StatusFlushed,
		6: hw.StatusBindFailed, 7: hw.StatusBadResponse, 8: hw.StatusLocalProtection, 9: hw.StatusRemoteResponder,
		10: hw.StatusRemoteAccess, 11: hw.StatusRemoteResponder, 12: hw.StatusTransport, 13: hw.StatusReceiverNotReady,
		19: hw.StatusTransport, 20: hw.StatusTransport, 21: hw.StatusTransport, 22: hw.StatusTransport, 63: hw.StatusTransport,
	} {
		assert.Equal(t, want, sends[verbs], "status %d of a send", verbs)
		if verbs != 9 && verbs != 2 {
			assert.Equal(t, want, recvs[verbs], "status %d of a receive", verbs)
		}
	}
	assert.Equal(t, hw.StatusLocalLength, recvs[9], "the peer's message did not fit")
	assert.Equal(t, hw.StatusLocalLength, recvs[2], "soft-RoCE's word for that")
	for i, s := range sends {
		assert.Equal(t, i == 0, s == hw.StatusSuccess, "status %d", i)
	}
}

func TestAtMostSixRetriesCoverNotReady(t *testing.T) {
	for _, d := range []time.Duration{
		1, 10 * time.Microsecond, time.Millisecond, 30 * time.Millisecond, time.Second, 2 * time.Second, 3900 * time.Millisecond,
	} {
		retries, code := rnr(d)
		total := time.Duration(retries) * rnrDelays[code]
		assert.LessOrEqual(t, retries, rnrMost, "%v", d)
		assert.GreaterOrEqual(t, total, d, "%v", d)
		assert.LessOrEqual(t, total, max(2*d, 10*time.Microsecond), "%v", d)
	}
}

func TestANotReadyOfZeroHasNoRetriesAndALongOneHasNoEnd(t *testing.T) {
	retries, code := rnr(0)
	assert.Zero(t, retries)
	assert.GreaterOrEqual(t, rnrMost*rnrDelays[code], rnrUsual, "the peer's sends get the usual time")
	retries, code = rnr(time.Hour)
	assert.Equal(t, rnrForever, retries)
	assert.Less(t, rnrDelays[code], rnrUsual/2, "of many senders that wait for shared receives, each asks often")
	assert.GreaterOrEqual(t, rnrMost*rnrDelays[code], rnrUsual, "the peer's sends get the usual time")
}

func TestTheCauseOfAFailedCompletionNamesItsVerbsStatus(t *testing.T) {
	c := completionCause(13, 0x81, hw.StatusReceiverNotReady, false)
	require.ErrorIs(t, c, hw.StatusReceiverNotReady.Err())
	assert.Equal(t, "verbs: IBV_WC_RNR_RETRY_EXC_ERR, vendor error 0x81 (13), found here", c.Error())
	assert.Equal(t, hw.SidePeer, completionCause(10, 0, hw.StatusRemoteAccess, false).Found)
	assert.Equal(t, hw.SideLocal, completionCause(wcRemoteInvalidRequest, 0, hw.StatusLocalLength, true).Found, "of a receive")
	assert.Contains(t, completionCause(99, 0, hw.StatusTransport, true).Error(), "completion status 99 of a receive")
	assert.Len(t, statuses, 22, "verbs' statuses, of which IBV_WC_GENERAL_ERR is the last")
	assert.Contains(t, statuses[21].name, "GENERAL")
	assert.Contains(t, statuses[wcRetryExceeded].name, "_RETRY_EXC_")
	assert.Contains(t, statuses[wcLocalQPOp].name, "_LOC_QP_OP_")
}
