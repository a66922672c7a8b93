package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/sim"
	"godat/mem"
)

// patience is how long a test waits for an event that should come at once.
const patience = time.Minute

// providers are the providers on which a test of connections runs.
var providers = map[string]func(t testing.TB) *IA{
	"loop":  func(t testing.TB) *IA { return open(t, "loop") },
	"iwarp": func(t testing.TB) *IA { return open(t, "iwarp") },
	"sim":   func(t testing.TB) *IA { return open(t, "sim", WithProvider(sim.New(sim.Config{Seed: 5}))) },
}

// onEach runs a test on each provider. The test must have closed all that it made,
// because the adapter closes gracefully.
func onEach(t *testing.T, test func(t *testing.T, ia *IA)) {
	for name, make := range providers {
		t.Run(name, func(t *testing.T) {
			ia := make(t)
			test(t, ia)
			require.NoError(t, ia.CloseGraceful(), "something is left")
		})
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// listen makes a listener with debugging on.
func listen(t testing.TB, ia *IA, cfg ConnConfig) *Listener {
	t.Helper()
	cfg.Debug = true
	l, err := ia.Listen(within(t), localhost(ia), cfg)
	require.NoError(t, err)
	return l
}

// localhost is an address to listen on that nothing else can reach.
func localhost(ia *IA) string {
	if ia.Attr().Provider == "iwarp" {
		return "127.0.0.1:0"
	}
	return ""
}

func dial(t testing.TB, ia *IA, l *Listener, cfg ConnConfig) *Conn {
	t.Helper()
	cfg.Debug = true
	c, err := ia.Dial(within(t), l.Addr(), cfg)
	require.NoError(t, err)
	return c
}

// nextEvent takes the next event of a channel.
func nextEvent(t testing.TB, events <-chan event.Event) event.Event {
	t.Helper()
	select {
	case ev, ok := <-events:
		require.True(t, ok, "the channel is closed")
		return ev
	case <-time.After(patience):
		require.Fail(t, "no event came")
		return event.Event{}
	}
}

// accept accepts the next request.
func accept(t testing.TB, l *Listener) *Conn {
	t.Helper()
	c, err := l.Accept(ep.RequestOf(nextEvent(t, l.Requests())), nil)
	require.NoError(t, err)
	return c
}

// both makes a listener, and returns both ends of a connection to it.
func both(t testing.TB, ia *IA, cfg ConnConfig) (l *Listener, client, server *Conn) {
	t.Helper()
	l = listen(t, ia, cfg)
	client, server = join(t, ia, l, cfg)
	return l, client, server
}

// join makes a pair of connections by a listener.
func join(t testing.TB, ia *IA, l *Listener, cfg ConnConfig) (client, server *Conn) {
	t.Helper()
	accepted := make(chan *Conn, 1)
	go func() {
		c, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
		assert.NoError(t, err)
		accepted <- c
	}()
	client = dial(t, ia, l, cfg)
	server = <-accepted
	require.NotNil(t, server)
	require.Equal(t, event.Established, nextEvent(t, server.Events()).Number)
	return client, server
}

// say sends text in a new buffer.
func say(t testing.TB, c *Conn, text string) {
	t.Helper()
	b := c.Buffer()
	require.NotNil(t, b, "no buffer")
	_, err := b.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, c.Send(b))
}

// hear takes a message and gives its buffer back.
func hear(t testing.TB, c *Conn) string {
	t.Helper()
	ev := nextEvent(t, c.Events())
	require.NoError(t, ev.Err())
	require.Equal(t, c, ConnOf(ev))
	b := c.Message(ev)
	require.NotNil(t, b, "%v is no message", ev)
	defer c.Release(b)
	return string(b.Bytes())
}

func TestMessagesComeBackFromTheBuffersTheyCameIn(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		const depth, rounds = 4, 60
		l, client, server := both(t, ia, ConnConfig{Depth: depth, Message: 64})
		served := make(chan error, 1)
		go func() { served <- echo(server) }()
		for sent, heard := 0, 0; heard < rounds; {
			for sent < min(heard+depth, rounds) {
				say(t, client, fmt.Sprint("message ", sent))
				sent++
			}
			require.Equal(t, fmt.Sprint("message ", heard), hear(t, client))
			heard++
		}
		require.NoError(t, client.Shutdown(within(t)))
		require.NoError(t, <-served)
		require.NoError(t, l.Close())
	})
}

// echo answers messages until the connection ends.
func echo(c *Conn) error {
	for ev := range c.Events() {
		if ev.Ended() {
			return ev.Err()
		}
		if b := c.Message(ev); b != nil {
			if err := c.Send(b); err != nil {
				return err
			}
		}
	}
	return errors.New("the channel was closed")
}

// A peer that sends as many messages as the depth allows, before this end takes any,
// finds receives; and again as soon as it has the answers.
func TestAPeerWithinItsCreditsAlwaysFindsAReceive(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		const depth = 3
		l, client, server := both(t, ia, ConnConfig{Depth: depth, Message: 64})
		for range 20 {
			for i := range depth {
				say(t, client, fmt.Sprint(i))
			}
			// The server holds all of them before it answers the first.
			var held []*mem.Buffer
			for range depth {
				held = append(held, server.Message(nextEvent(t, server.Events())))
			}
			for _, b := range held {
				require.NoError(t, server.Queue(b))
			}
			require.NoError(t, server.Flush())
			for i := range depth {
				require.Equal(t, fmt.Sprint(i), hear(t, client))
			}
		}
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestOneChannelCarriesAllConnectionsOfAListener(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		const n = 5
		l := listen(t, ia, ConnConfig{Depth: 2, Message: 64, Setup: func(c *Conn) ([]byte, error) {
			c.Context = c.String() + string(c.Private())
			return nil, nil
		}})
		ctx := within(t)
		ended := make(chan error, 1)
		go func() { ended <- serveAll(ctx, l, n) }()
		var conns []*Conn
		for i := range n {
			c := dial(t, ia, l, ConnConfig{Depth: 2, Message: 64, Private: []byte{byte(i)}})
			assert.Contains(t, c.String(), l.Addr())
			assert.Equal(t, "welcome", string(c.Private()))
			conns = append(conns, c)
		}
		for i, c := range conns {
			say(t, c, fmt.Sprint("from ", i))
		}
		for i, c := range conns {
			require.Equal(t, fmt.Sprint("from ", i), hear(t, c))
			require.NoError(t, c.Shutdown(ctx))
		}
		require.NoError(t, <-ended)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close(), "again")
	})
}

// serveAll is an echo server in one select, until n connections have ended.
func serveAll(ctx context.Context, l *Listener, n int) error {
	for n > 0 {
		select {
		case ev := <-l.Requests():
			if _, err := l.Accept(ep.RequestOf(ev), []byte("welcome")); err != nil {
				return err
			}
		case ev := <-l.Events():
			c := ConnOf(ev)
			switch {
			case ev.Ended():
				if c.Context == nil {
					return errors.New("Setup was not called")
				}
				n--
				if err := errors.Join(ev.Err(), c.Close()); err != nil {
					return err
				}
			case ev.Op == hw.OpRecv:
				if err := c.Send(c.Message(ev)); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func TestRDMAEndsInTheSameChannelWithATypedContext(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		cfg := ConnConfig{Depth: 4, Message: 256, Privileges: hw.AllPrivileges}
		l, client, server := both(t, ia, cfg)
		source := client.Buffer()
		_, _ = source.Write([]byte("read me"))
		offer := client.Buffer()
		where, _ := source.Remote().AppendBinary(offer.Bytes())
		_, _ = offer.Write(where)
		require.NoError(t, client.Send(offer))

		m := server.Message(nextEvent(t, server.Events()))
		from, err := mem.ParseRemoteSegment(m.Bytes())
		require.NoError(t, err)
		m.Resize(int(from.Len))
		require.NoError(t, server.Endpoint.PostRDMARead(7, hw.Default, from, m.Segment()))
		ev := nextEvent(t, server.Events())
		require.NoError(t, ev.Err())
		require.Equal(t, hw.OpRead, ev.Op)
		assert.Nil(t, server.Message(ev), "a read is no message")
		assert.EqualValues(t, 7, ev.Cookie)
		assert.Equal(t, "read me", string(m.Bytes()))
		server.Release(m)
		client.Release(source)

		in, out := server.Endpoint.Reads()
		assert.Equal(t, [2]int{4, 4}, [2]int{in, out}, "a default that throttled nobody")
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

func TestReceiveTellsTheEndByItsError(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		say(t, server, "one")
		b, err := client.Receive(within(t))
		require.NoError(t, err)
		assert.Equal(t, "one", string(b.Bytes()))
		client.Release(b)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		_, err = client.Receive(ctx)
		require.ErrorIs(t, err, why)
		require.NoError(t, l.Shutdown(within(t)))
		_, err = client.Receive(within(t))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, client.Close())
		_, err = client.Receive(within(t))
		require.ErrorIs(t, err, net.ErrClosed)
		requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
	})
}

func TestShutdownSendsWhatWasPosted(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 8, Message: 64})
		for i := range 8 {
			say(t, server, fmt.Sprint(i))
		}
		require.NoError(t, l.Shutdown(within(t)))
		for i := range 8 {
			require.Equal(t, fmt.Sprint(i), hear(t, client))
		}
		ev := nextEvent(t, client.Events())
		require.True(t, ev.Ended())
		require.NoError(t, ev.Err())
		require.NoError(t, client.Close())
	})
}

func TestAConnectionThatDoesNotEndIsBrokenOff(t *testing.T) {
	ia := open(t, "loop")
	// The peer has no receive for the message, so the send waits.
	l, client, server := both(t, ia, ConnConfig{Depth: 1, Message: 64, Attr: &ep.Attr{ReceiverNotReady: time.Hour}})
	for range 2 {
		say(t, server, "a message")
		require.Eventually(t, func() bool { return allBack(server) || client.missing.Load() != 0 || len(client.Events()) > 0 }, patience, time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, l.Shutdown(ctx), context.Canceled)
	require.NoError(t, client.Close())
	require.NoError(t, ia.CloseGraceful())
}

func TestQueuedMessagesAreNotLostWithTheConnection(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		require.NoError(t, server.Close())
		require.True(t, nextEvent(t, client.Events()).Ended())
		require.NoError(t, client.Queue(client.Buffer()))
		requireCode(t, client.Flush(), hw.InvalidState, hw.StateEPDisconnected)
		require.NoError(t, client.Queue(client.Buffer()))
		require.NoError(t, client.Close(), "no buffer is missing")
		require.NoError(t, l.Close())
	})
}

func TestASetupThatFailsLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		why := errors.New("not today")
		l := listen(t, ia, ConnConfig{Setup: func(*Conn) ([]byte, error) { return nil, why }})
		_, err := ia.Dial(within(t), l.Addr(), ConnConfig{Setup: func(*Conn) ([]byte, error) { return nil, why }})
		require.ErrorIs(t, err, why)
		accepted := make(chan error, 1)
		go func() {
			_, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
			accepted <- err
		}()
		_, err = ia.Dial(within(t), l.Addr(), ConnConfig{})
		require.ErrorIs(t, err, event.Error(event.PeerRejected))
		require.ErrorIs(t, <-accepted, why)
		require.NoError(t, l.Close())
	})
}
