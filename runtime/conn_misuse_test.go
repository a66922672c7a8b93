package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

// onEachWatched runs a test on each provider, with connections that watch their buffers
// and with connections that do not.
func onEachWatched(t *testing.T, test func(t *testing.T, l *Listener, client, server *Conn)) {
	for _, watched := range []bool{false, true} {
		t.Run(fmt.Sprintf("Debug=%v", watched), func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				cfg := ConnConfig{Depth: 2, Message: 64, Debug: watched}
				l, err := ia.Listen(within(t), localhost(ia), cfg)
				require.NoError(t, err)
				accepted := make(chan *Conn, 1)
				go func() {
					c, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
					assert.NoError(t, err)
					accepted <- c
				}()
				client, err := ia.Dial(within(t), l.Addr(), cfg)
				require.NoError(t, err)
				server := <-accepted
				require.Equal(t, event.Established, nextEvent(t, server.Events()).Number)
				test(t, l, client, server)
				require.NoError(t, client.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}

// room waits until the connection has a buffer for the program.
func room(t *testing.T, c *Conn) (b *mem.Buffer) {
	t.Helper()
	require.Eventually(t, func() bool { b = c.Buffer(); return b != nil }, patience, time.Millisecond, "the sent buffers come back")
	return b
}

func TestABufferIsSentOnce(t *testing.T) {
	for name, leave := range map[string]func(c *Conn, b *mem.Buffer) error{
		"sent":     (*Conn).Send,
		"queued":   (*Conn).Queue,
		"released": func(c *Conn, b *mem.Buffer) error { c.Release(b); return nil },
		"put":      func(_ *Conn, b *mem.Buffer) error { b.Put(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onEachWatched(t, func(t *testing.T, _ *Listener, client, server *Conn) {
				for i := range 5 {
					if i > 0 && name == "put" {
						return // what the program puts counts as taken until the pool gives it out again
					}
					b := client.Buffer()
					require.NotNil(t, b)
					require.NoError(t, leave(client, b))
					for _, send := range []func(*mem.Buffer) error{client.Send, client.Queue} {
						err := send(b)
						requireCode(t, err, hw.InvalidParameter, hw.Arg1)
						require.ErrorContains(t, err, "this buffer has been sent or released")
					}
					require.NoError(t, client.Flush())
					say(t, client, fmt.Sprint(i))
					for heard := ""; heard != fmt.Sprint(i); {
						heard = hear(t, server)
					}
					require.Eventually(t, func() bool { return allBack(client) || name == "put" }, patience, time.Millisecond)
				}
			})
		})
	}
}

func TestAMessageIsTakenOnce(t *testing.T) {
	onEachWatched(t, func(t *testing.T, _ *Listener, client, server *Conn) {
		say(t, client, "once")
		ev := nextEvent(t, server.Events())
		b := server.Message(ev)
		require.NotNil(t, b)
		require.Nil(t, server.Message(ev), "the program has it")
		require.NoError(t, server.Send(b))
		require.Nil(t, server.Message(ev), "it was sent")
		require.Equal(t, "once", hear(t, client))
		for i := range 20 { // the same buffers come again
			b := room(t, client)
			fmt.Fprint(b, i)
			require.NoError(t, client.Send(b))
			later := nextEvent(t, server.Events())
			require.Nil(t, server.Message(ev))
			m := server.Message(later)
			require.Equal(t, fmt.Sprint(i), string(m.Bytes()))
			server.Release(m)
		}
	})
}

func TestABufferIsReleasedOnce(t *testing.T) {
	for name, leave := range map[string]func(c *Conn, b *mem.Buffer) error{
		"sent":     (*Conn).Send,
		"released": func(c *Conn, b *mem.Buffer) error { c.Release(b); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			onEachWatched(t, func(t *testing.T, _ *Listener, client, server *Conn) {
				b := client.Buffer()
				require.NoError(t, leave(client, b))
				if name == "sent" {
					require.Equal(t, "", hear(t, server))
					require.Eventually(t, func() bool { return allBack(client) }, patience, time.Millisecond)
				}
				require.Panics(t, func() { client.Release(b) })
				say(t, client, "it goes on")
				require.Equal(t, "it goes on", hear(t, server))
			})
		})
	}
}

func TestASendOnAConnectionThatHasEndedSucceeds(t *testing.T) {
	onEachWatched(t, func(t *testing.T, _ *Listener, client, server *Conn) {
		require.NoError(t, server.Close())
		require.True(t, nextEvent(t, client.Events()).Ended())
		for range 3 * client.cfg.Depth {
			require.NoError(t, client.Send(room(t, client)))
		}
		require.NoError(t, client.Close())
		requireCode(t, client.Send(nil), hw.InvalidParameter, hw.Arg1)
	})
}
