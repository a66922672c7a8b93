package delivery

import (
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

type feed struct {
	streams event.Streams // of Attach; 0: AttachDTO
	flags   hw.Flags
}

func (f feed) attach(d *Dispatcher) error {
	if f.streams != 0 {
		return d.Attach(f.streams)
	}
	return d.AttachDTO(f.flags)
}

var (
	conn      = feed{streams: event.StreamConnection}
	def       = feed{flags: hw.Default}
	threshold = feed{flags: hw.EVDThreshold}
	unsig     = feed{flags: hw.Unsignalled | hw.EVDThreshold}
	sol       = feed{flags: hw.SolicitedWait}
	both      = feed{flags: hw.SolicitedWait | hw.Unsignalled}
)

// DAT's rule: either all completion streams use UNSIGNALLED or none does, streams
// with SOLICITED_WAIT go with each other only, and other streams go with the
// default only.
var feedPairs = []struct {
	first, second feed
	sub           hw.Subtype // 0: they go together
	state         FeedConfig
}{
	{def, def, 0, NotifyThreshold},
	{def, threshold, 0, NotifyThreshold},
	{conn, def, 0, NotifyThreshold},
	{unsig, unsig, 0, NotifyUnlessUnsignalled},
	{sol, sol, 0, NotifySolicited},
	{both, both, 0, NotifySolicited},
	{def, unsig, hw.StateEVDConfigThreshold, NotifyThreshold},
	{def, sol, hw.StateEVDConfigThreshold, NotifyThreshold},
	{conn, unsig, hw.StateEVDConfigThreshold, NotifyThreshold},
	{unsig, conn, hw.StateEVDConfigNotify, NotifyUnlessUnsignalled},
	{unsig, threshold, hw.StateEVDConfigNotify, NotifyUnlessUnsignalled},
	{unsig, sol, hw.StateEVDConfigNotify, NotifyUnlessUnsignalled},
	{sol, unsig, hw.StateEVDConfigSolicited, NotifySolicited},
	{sol, both, hw.StateEVDConfigSolicited, NotifySolicited},
	{sol, conn, hw.StateEVDConfigSolicited, NotifySolicited},
	{both, def, hw.StateEVDConfigSolicited, NotifySolicited},
}

func TestFeedsMustAgreeOnWhatNotifies(t *testing.T) {
	for _, tc := range feedPairs {
		d := newDispatcher(t, Config{})
		require.NoError(t, tc.first.attach(d))
		err := tc.second.attach(d)
		if tc.sub == 0 {
			assert.NoError(t, err, "%+v", tc)
		} else {
			isError(t, err, hw.InvalidState, tc.sub, "%+v", tc)
		}
		assert.Equal(t, tc.state, d.FeedConfig())

		_, _, err = waitOne(d, expired(), 2)
		if tc.state == NotifyThreshold {
			isError(t, err, hw.TimeoutExpired, hw.NoSubtype)
		} else {
			isError(t, err, hw.InvalidState, d.feeds.subtype())
		}
		_, _, err = waitOne(d, expired(), 1)
		isError(t, err, hw.TimeoutExpired, hw.NoSubtype)
	}
}

func TestFeedsThatHaveLeftHaveNoSay(t *testing.T) {
	d := newDispatcher(t, Config{})
	require.NoError(t, d.AttachDTO(hw.Unsignalled))
	d.DetachDTO(hw.Unsignalled)
	assert.NoError(t, d.AttachDTO(hw.SolicitedWait), "who has left has no say")
	d.DetachDTO(hw.SolicitedWait)
	assert.Panics(t, func() { d.DetachDTO(hw.SolicitedWait) })
}
