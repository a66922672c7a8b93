package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// With NoDTOs in Attr.MaxRequestDTOs an end only receives.
func TestAConnectionThatMayPostNoRequestsReceives(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		mute := ConnConfig{Depth: 2, Message: 64, Attr: &ep.Attr{MaxRequestDTOs: ep.NoDTOs}}
		l := listen(t, ia, mute)
		client, server := join(t, ia, l, ConnConfig{Depth: 2, Message: 64})
		say(t, client, "a")
		assert.Equal(t, "a", hear(t, server))
		requireCode(t, server.SendBytes([]byte("b")), hw.InsufficientResources, hw.ResourceCredits)
		require.NoError(t, server.Queue(server.Buffer()))
		requireCode(t, server.Flush(), hw.InsufficientResources, hw.ResourceCredits)
		server.Outbox().Reset()
		require.NoError(t, client.Close())
		require.True(t, nextEvent(t, server.Events()).Ended())
		require.NoError(t, server.Close())

		client, server = join(t, ia, l, mute)
		require.NoError(t, client.Shutdown(within(t)))
		require.True(t, nextEvent(t, server.Events()).Ended())
		require.NoError(t, l.Close())
	})
}
