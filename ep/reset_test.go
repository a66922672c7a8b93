package ep

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/hw/event"
)

// Reset finds the endpoint connected, and before its turn comes the provider reports the end.
func TestAResetThatMeetsTheEndOfTheConnectionWaitsForIt(t *testing.T) {
	for range 2 {
		r := newRig(t)
		a, b := r.pair(nil)
		require.NoError(t, a.PostRecv(1, 0, r.lmr.Segment(0, 8)))
		require.True(t, a.box.Token.TakeOrKick())
		reset := goResult(a.Reset)
		r.await(func() bool { return a.box.Inside().Told(line.TellControl) })
		(*reports)(a).Down(hw.ReasonPeer, nil)
		a.box.Inside().Run()
		require.NoError(t, <-reset)

		assert.Equal(t, Unconnected, a.State())
		assert.Equal(t, hw.StatusFlushed, r.next(r.dto).Status)
		assert.Equal(t, event.Disconnected, r.next(r.conn).Number, "of the end, which is the last event")
		require.NoError(t, b.Disconnect(Abrupt))
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
	}
}
