package evd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

type feed struct {
	streams Streams // of Attach; 0: AttachDTO
	flags   hw.Flags
}

func (f feed) attach(d *Dispatcher) error {
	if f.streams != 0 {
		return d.Attach(f.streams)
	}
	return d.AttachDTO(f.flags)
}

var (
	conn      = feed{streams: StreamConnection}
	def       = feed{flags: hw.Default}
	threshold = feed{flags: hw.EVDThreshold}
	unsig     = feed{flags: hw.Unsignalled | hw.EVDThreshold}
	sol       = feed{flags: hw.SolicitedWait}
	both      = feed{flags: hw.SolicitedWait | hw.Unsignalled}
)

// DAT: either all completion streams use UNSIGNALLED or none, SOLICITED_WAIT is
// among itself, and other streams go with the default alone.
var feedPairs = []struct {
	first, second feed
	sub           hw.Subtype // 0: they go together
	state         State
}{
	{def, def, 0, ConfigThreshold},
	{def, threshold, 0, ConfigThreshold},
	{conn, def, 0, ConfigThreshold},
	{unsig, unsig, 0, ConfigNotify},
	{sol, sol, 0, ConfigSolicited},
	{both, both, 0, ConfigSolicited},
	{def, unsig, hw.StateEVDConfigThreshold, ConfigThreshold},
	{def, sol, hw.StateEVDConfigThreshold, ConfigThreshold},
	{conn, unsig, hw.StateEVDConfigThreshold, ConfigThreshold},
	{unsig, conn, hw.StateEVDConfigNotify, ConfigNotify},
	{unsig, threshold, hw.StateEVDConfigNotify, ConfigNotify},
	{unsig, sol, hw.StateEVDConfigNotify, ConfigNotify},
	{sol, unsig, hw.StateEVDConfigSolicited, ConfigSolicited},
	{sol, both, hw.StateEVDConfigSolicited, ConfigSolicited},
	{sol, conn, hw.StateEVDConfigSolicited, ConfigSolicited},
	{both, def, hw.StateEVDConfigSolicited, ConfigSolicited},
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
		p, err := d.Query(FieldState)
		require.NoError(t, err)
		assert.Equal(t, tc.state, p.State.Config())

		_, _, err = d.Wait(expired(), 2)
		if tc.state == ConfigThreshold {
			isError(t, err, hw.TimeoutExpired, hw.NoSubtype)
		} else {
			isError(t, err, hw.InvalidState, d.feeds.subtype())
		}
		_, _, err = d.Wait(expired(), 1)
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
