package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// onTwo runs a test on two adapters of each provider that has them in one process.
func onTwo(t *testing.T, test func(t *testing.T, server, client *IA)) {
	for _, name := range []string{"loop", "iwarp"} {
		t.Run(name, func(t *testing.T) { test(t, open(t, name), open(t, name)) })
	}
}

// answer waits for what a call on another goroutine returned.
func answer(t testing.TB, answers <-chan error) error {
	t.Helper()
	select {
	case err := <-answers:
		return err
	case <-time.After(patience):
		require.Fail(t, "the call hangs")
		return nil
	}
}

func TestADialThatWaitsEndsWithItsAdapter(t *testing.T) {
	onTwo(t, func(t *testing.T, server, client *IA) {
		l := listen(t, server, ConnConfig{})
		dialed := make(chan error, 1)
		go func() {
			_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{})
			dialed <- err
		}()
		event(t, l.Requests())
		require.NoError(t, client.Close())
		requireCode(t, answer(t, dialed), hw.InvalidHandle, hw.HandleIA)
		require.NoError(t, l.Close())
	})
}

func TestADialThatWaitsEndsWithItsConnection(t *testing.T) {
	onTwo(t, func(t *testing.T, server, client *IA) {
		l := listen(t, server, ConnConfig{})
		dialed, made := make(chan error, 1), make(chan *Conn, 1)
		go func() {
			_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{Setup: func(c *Conn) error {
				made <- c
				return nil
			}})
			dialed <- err
		}()
		event(t, l.Requests())
		require.NoError(t, (<-made).Close())
		requireCode(t, answer(t, dialed), hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
		require.NoError(t, client.CloseGraceful())
	})
}

func TestAShutdownThatWaitsEndsWithItsAdapter(t *testing.T) {
	server, client := open(t, "loop"), open(t, "loop")
	cfg := ConnConfig{Depth: 1, Message: 64, Attr: &ep.Attr{ReceiverNotReady: time.Hour}}
	l := listen(t, server, cfg)
	go func() { _, _ = l.Accept(RequestOf(<-l.Requests()), nil) }()
	c := dial(t, client, l, cfg)
	up := ConnOf(event(t, l.Events()))
	say(t, c, "one")
	event(t, up.Events()) // the receive is not posted again
	say(t, c, "two")
	down := make(chan error, 2)
	go func() { down <- c.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool { return c.Endpoint.State() == ep.DisconnectPending }, patience, time.Millisecond)
	require.NoError(t, client.Close())
	require.NoError(t, answer(t, down))
	require.NoError(t, l.Close())
}
