package runtime

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// Close may come beside every other call of a connection, also when the connection
// watches its buffers.
func TestCloseMayComeBesideEveryCallOfAConnection(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	onEachWatched(t, func(t *testing.T, l *Listener, client, server *Conn) {
		var wg sync.WaitGroup
		for range rounds {
			accepted := make(chan *Conn, 1)
			wg.Go(func() {
				c, _ := l.Accept(ep.RequestOf(<-l.Requests()), nil)
				accepted <- c
			})
			c, err := client.ia.Dial(within(t), l.Addr(), client.cfg)
			require.NoError(t, err)
			peer := <-accepted
			wg.Go(func() { _ = c.SendBytes([]byte("a")) })
			wg.Go(func() { _ = c.SendBytes([]byte("b")) })
			wg.Go(func() { _ = peer.SendBytes([]byte("c")) })
			wg.Go(func() {
				b, _ := c.Receive(within(t))
				c.Release(b)
			})
			wg.Go(func() {
				if err := c.Close(); err != nil { // with Debug, SendBytes may have a buffer at that moment
					assert.ErrorIs(t, err, hw.ErrInvalidState)
				}
			})
			wg.Wait()
			_ = peer.Close()
		}
	})
}
