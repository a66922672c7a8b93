package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
)

// oneTooMany makes a connection and sends two messages, of which the server takes none.
// There is a receive for the first one.
func oneTooMany(t *testing.T, ia *IA, attr *ep.Attr) (l *Listener, client, server *Conn) {
	l, client, server = both(t, ia, ConnConfig{Depth: 1, Message: 64, Attr: attr})
	for range 2 {
		b, err := client.WaitBuffer(within(t)) // the one of the first message may still be in use
		require.NoError(t, err)
		_, _ = b.Write([]byte("hello"))
		_ = client.Send(b) // fails once the connection has ended
	}
	return l, client, server
}

func TestASendThatFindsNoReceiveEndsTheConnection(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			l, client, server := oneTooMany(t, open(t, provider), nil)
			if provider == "loop" {
				assert.Equal(t, ep.Disconnected, client.Endpoint.State(), "at once: the send did not wait")
			}
			ev := nextEvent(t, client.Events())
			assert.True(t, ev.Ended())
			require.Error(t, ev.Err())
			assert.Equal(t, "hello", hear(t, server))
			require.NoError(t, client.Close())
			require.NoError(t, l.Close())
		})
	}
}

func TestASendWaitsForItsReceiveWhereTheProgramAsksForIt(t *testing.T) {
	for name, c := range map[string]struct {
		params map[string]string
		attr   *ep.Attr
		want   time.Duration
	}{
		"of the device":          {map[string]string{"notready": "wait"}, nil, time.Second},
		"for a time of its own":  {nil, &ep.Attr{ReceiverNotReady: time.Hour}, time.Hour},
		"of both, for that time": {map[string]string{"notready": "wait"}, &ep.Attr{ReceiverNotReady: time.Minute}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, "loop", WithParams(c.params))
			l, client, server := oneTooMany(t, ia, c.attr)
			p, err := client.Endpoint.Query()
			require.NoError(t, err)
			require.Equal(t, c.want, p.Attr.ReceiverNotReady)
			for range 2 {
				require.Equal(t, "hello", hear(t, server))
			}
			require.NoError(t, client.Close())
			require.NoError(t, l.Close())
		})
	}
}
