package runtime

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestSendBytesSendsACopy(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 8})
		p := []byte("the copy")
		for range 10 { // more than there are buffers
			require.NoError(t, client.SendBytes(p))
			copy(p, "changed!")
			require.Equal(t, "the copy", hear(t, server))
			copy(p, "the copy")
			require.Eventually(t, func() bool { return allBack(client) }, patience, time.Millisecond)
		}
		require.NoError(t, client.SendBytes(nil))
		require.Empty(t, hear(t, server), "a message without bytes")
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestSendBytesThatFailsKeepsNoBuffer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 1, Message: 8})
		requireCode(t, client.SendBytes([]byte(strings.Repeat("x", 9))), hw.LengthError, hw.NoSubtype)
		b := client.Buffer()
		requireCode(t, client.SendBytes([]byte("x")), hw.InsufficientResources, hw.ResourceMemory)
		client.Release(b)
		require.NoError(t, client.SendBytes([]byte("x")))
		require.Equal(t, "x", hear(t, server))

		require.NoError(t, server.Close())
		require.True(t, nextEvent(t, client.Events()).Ended())
		for range 3 { // each send is flushed, and its buffer comes back
			require.NoError(t, client.SendBytes([]byte("x")))
			require.Eventually(t, func() bool { return allBack(client) }, patience, time.Millisecond)
		}
		require.NoError(t, client.Close(), "no buffer is missing")
		requireCode(t, client.SendBytes(nil), hw.InvalidHandle, hw.HandleEP)
		requireCode(t, (*Conn)(nil).SendBytes(nil), hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
	})
}
