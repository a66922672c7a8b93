package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/event"
)

// Dial has taken the first of these events. The program takes those of its own connects.
func TestAConnectionThatIsConnectedAnewSaysThatItIsUp(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{})
		require.NoError(t, server.Close())
		for !nextEvent(t, client.Events()).Ended() {
		}
		require.Eventually(t, func() bool { return client.Endpoint.Reset() == nil }, patience, time.Millisecond)
		again := make(chan *Conn, 1)
		go func() {
			c, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
			assert.NoError(t, err)
			again <- c
		}()
		require.NoError(t, client.Endpoint.CommonConnect(l.Addr(), ep.ConnectConfig{}))
		assert.Equal(t, event.Established, nextEvent(t, client.Events()).Number)
		require.NoError(t, (<-again).Close())
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}
