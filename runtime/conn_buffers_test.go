package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
)

func TestABufferThatIsKeptIsNamedAtTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		require.NotNil(t, client.Buffer())
		err := client.Close()
		require.ErrorIs(t, err, hw.ErrInvalidState)
		assert.ErrorContains(t, err, "TestABufferThatIsKept")
		require.NoError(t, client.Close(), "said once")
		require.True(t, nextEvent(t, server.Events()).Ended())
		require.NoError(t, l.Close())
	})
}

// takeMessage is a handler that keeps its message.
func takeMessage(c *Conn, ev event.Event) *mem.Buffer { return c.Message(ev) }

func TestAMessageThatIsKeptIsNamedByTheCallThatTookIt(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		say(t, client, "keep me")
		b := takeMessage(server, nextEvent(t, server.Events()))
		err := server.Close()
		require.ErrorIs(t, err, hw.ErrInvalidState)
		assert.ErrorContains(t, err, "takeMessage")
		assert.NotContains(t, err.Error(), "Accept")
		require.Equal(t, "keep me", string(b.Bytes()))
		requireCode(t, server.Send(b), hw.InvalidHandle, hw.HandleEP)
		server.Release(b) // the send has taken it
		assert.Nil(t, b.Bytes())
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
		require.Zero(t, ia.MemoryStats().Mapped)
	})
}

func TestAClosedConnectionHasNoBuffers(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64, Apart: true})
		assert.Nil(t, l.Events(), "each connection has its own channel")
		say(t, client, "unheard")
		ev := nextEvent(t, server.Events())
		require.NoError(t, server.Close())
		assert.Nil(t, server.Message(ev))
		assert.Nil(t, server.Buffer())
		server.Release(nil)
		require.ErrorIs(t, server.Send(nil), hw.ErrInvalidParameter)
		require.ErrorIs(t, server.Queue(nil), hw.ErrInvalidParameter)
		for !nextEvent(t, server.Events()).Ended() {
			// What the close flushed.
		}
		require.True(t, nextEvent(t, client.Events()).Ended())
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestAProgramHasDepthBuffersOfItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, _ := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		a, b := client.Buffer(), client.Buffer()
		require.NotNil(t, a)
		require.NotNil(t, b)
		require.Nil(t, client.Buffer())
		client.Release(a)
		require.NoError(t, client.Send(b))
		require.Eventually(t, func() bool { return allBack(client) }, patience, time.Millisecond, "a buffer is back when it was sent")
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

// allBack reports whether the pool has all buffers that Buffer may give out.
func allBack(c *Conn) bool {
	var got []*mem.Buffer
	for b := c.Buffer(); b != nil; b = c.Buffer() {
		got = append(got, b)
	}
	for _, b := range got {
		c.Release(b)
	}
	return len(got) == c.cfg.Depth
}

func TestACallWaitsForABuffer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 1, Message: 64})
		b, err := client.WaitBuffer(within(t))
		require.NoError(t, err)
		got := make(chan *mem.Buffer)
		wait := func() {
			b, _ := client.WaitBuffer(within(t))
			got <- b
		}
		go wait()
		require.NoError(t, client.Send(b))
		server.Release(server.Message(nextEvent(t, server.Events())))
		assert.Same(t, b, <-got, "the send has completed")

		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = client.WaitBuffer(over)
		require.ErrorIs(t, err, context.Canceled)
		_, err = client.WaitBuffer(nil) //nolint:staticcheck // that is the test
		requireCode(t, err, hw.InvalidParameter, hw.Arg1)

		go wait()
		require.Error(t, client.Close(), "the program has a buffer")
		assert.Nil(t, <-got)
		client.Release(b)
		_, err = client.WaitBuffer(within(t))
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		_, err = (*Conn)(nil).WaitBuffer(within(t))
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
	})
}
