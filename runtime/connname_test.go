package runtime

import (
	"testing"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachConnectionHasAnIDOfItsOwnAndItsAddressesBehindItsEnd(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{})
		dialed, err := l.Dial(l.Addr(), nil)
		require.NoError(t, err)
		accepted := accept(t, l)
		for up := 0; up < 2; up++ {
			require.Equal(t, event.Established, nextEvent(t, l.Events()).Number)
		}
		all := []*Conn{client, server, dialed, accepted}
		ids := map[uint64]bool{0: true}
		for _, c := range all {
			assert.False(t, ids[c.ID()])
			ids[c.ID()] = true
		}
		same := func() {
			for i, c := range all {
				require.NotNil(t, c.RemoteAddr())
				assert.Equal(t, c.RemoteAddr().String(), all[i^1].LocalAddr().String())
			}
		}
		same()
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
		same()
	})
	assert.Zero(t, (*Conn)(nil).ID())
	assert.Nil(t, (*Conn)(nil).LocalAddr())
	assert.Nil(t, (*Conn)(nil).RemoteAddr())
}
