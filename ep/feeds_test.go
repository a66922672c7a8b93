package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

func TestEndpointsThatNotifyDifferentlyShareNoDispatcher(t *testing.T) {
	r := newRig(t)
	d := r.dispatcher(evd.ModeQueue, 64)
	config := func(flags hw.Flags) Config {
		return Config{PZ: r.pz, Recv: d, Conn: r.conn, Attr: &Attr{RecvFlags: flags}}
	}
	first := r.endpointOf(config(hw.Unsignalled))
	_, err := r.adapter.NewEndpoint(config(0))
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEVDConfigNotify})
	_, err = r.adapter.NewEndpoint(config(hw.SolicitedWait))
	require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidState, Sub: hw.StateEVDConfigNotify})
	second := r.endpointOf(config(hw.Unsignalled))
	_, err = r.adapter.NewEndpoint(Config{PZ: r.pz, Conn: d})
	require.ErrorIs(t, err, hw.ErrInvalidState, "nor with connection events")
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	other := r.endpointOf(config(0))
	assert.NoError(t, other.Close(), "what has gone doesn't count")
	require.NoError(t, d.Close())
}
