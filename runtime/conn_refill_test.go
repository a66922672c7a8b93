package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
	"godat/mem"
)

// The program releases buffers while another of its goroutines, which has found none, is about to
// say that the receives are missing.
func TestABufferThatComesBackWhileNoneWasFoundIsReceivedInto(t *testing.T) {
	ia := open(t, "loop")
	defer func() { require.NoError(t, ia.Close()) }()
	l, client, server := both(t, ia, ConnConfig{Depth: 8, Message: 64})
	var kept []*mem.Buffer
	yield.Interleave(func() (first, second, check func()) {
		for int(server.missing.Load()) < server.cfg.receives() {
			require.NoError(t, client.SendBytes([]byte("message")))
			kept = append(kept, server.Message(nextEvent(t, server.Events())))
			require.NotNil(t, kept[len(kept)-1])
		}
		return server.receiveMissing, func() {
				for range server.cfg.batch {
					server.Release(kept[0])
					kept = kept[1:]
				}
			}, func() {
				assert.Equal(t, server.cfg.receives()-server.cfg.batch, int(server.missing.Load()))
			}
	})
	for _, b := range kept {
		server.Release(b)
	}
	for _, c := range []*Conn{client, server} {
		require.NoError(t, c.Close())
	}
	require.NoError(t, l.Close())
}
