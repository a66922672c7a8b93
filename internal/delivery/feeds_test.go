package delivery

import (
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func feedOf(flags hw.Flags) Feed { return Feed{Streams: event.StreamDTO, Flags: flags} }

var (
	conn      = Feed{Streams: event.StreamConnection}
	def       = feedOf(hw.Default)
	threshold = feedOf(hw.EVDThreshold)
	unsig     = feedOf(hw.Unsignalled | hw.EVDThreshold)
	sol       = feedOf(hw.SolicitedWait)
	both      = feedOf(hw.SolicitedWait | hw.Unsignalled)
)

// DAT's rule: either all completion streams use UNSIGNALLED or none does, streams
// with SOLICITED_WAIT go with each other only, and other streams go with the
// default only.
var feedPairs = []struct {
	first, second Feed
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
		require.NoError(t, d.Feeds().Attach(tc.first))
		err := d.Feeds().Attach(tc.second)
		if tc.sub == 0 {
			assert.NoError(t, err, "%+v", tc)
		} else {
			isError(t, err, hw.InvalidState, tc.sub, "%+v", tc)
		}
		assert.Equal(t, tc.state, d.Feeds().Config())

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

func TestDetachedFeedsDoNotCount(t *testing.T) {
	feeds := newDispatcher(t, Config{}).Feeds()
	require.NoError(t, feeds.Attach(unsig))
	feeds.Detach(unsig)
	assert.NoError(t, feeds.Attach(sol))
	feeds.Detach(sol)
	assert.Panics(t, func() { feeds.Detach(sol) })
}
