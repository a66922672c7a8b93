package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
	"godat/mem"
)

// take takes the next message that comes to an end.
func take(t testing.TB, c *Conn) *mem.Buffer {
	t.Helper()
	b := c.Message(nextEvent(t, c.Events()))
	require.NotNil(t, b)
	return b
}

func TestAShutdownWaitsForTheMessagesThatTheProgramHas(t *testing.T) {
	for name, shutdown := range map[string]func(l *Listener, c *Conn) error{
		"of the listener":   func(l *Listener, _ *Conn) error { return l.Shutdown(context.Background()) },
		"of the connection": func(_ *Listener, c *Conn) error { return c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 64})
				for i := range 4 {
					say(t, client, fmt.Sprint(i))
				}
				first, second := take(t, server), take(t, server)
				third := nextEvent(t, server.Events())
				own := server.Buffer()
				down := make(chan error, 1)
				go func() { down <- shutdown(l, server) }()
				require.Eventually(t, server.refuses.Load, patience, time.Millisecond)
				assert.Nil(t, server.Message(third), "the program takes no message any more")
				require.NoError(t, server.Send(second))
				first.Lend()
				own.Resize(0)
				_, _ = own.Write([]byte("own"))
				require.NoError(t, server.Send(own))
				require.Empty(t, down, "the program has lent the first message")
				first.Return(1)
				server.Release(first)
				require.NoError(t, answer(t, down))
				assert.Equal(t, "1", hear(t, client))
				assert.Equal(t, "own", hear(t, client))
				ev := nextEvent(t, client.Events())
				require.True(t, ev.Ended())
				require.NoError(t, ev.Err(), "in order")
				require.NoError(t, client.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}

func TestAShutdownSaysWhatItCutOff(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 64})
		say(t, client, "held")
		say(t, client, "held")
		first, second := take(t, server), take(t, server)
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		down := make(chan error, 1)
		go func() { down <- l.Shutdown(ctx) }()
		require.Eventually(t, server.refuses.Load, patience, time.Millisecond)
		cancel(why)
		err := answer(t, down)
		require.ErrorIs(t, err, why)
		require.ErrorContains(t, err, "runtime.Listener.Shutdown: 1 connections were cut off, "+server.String()+" the first, while the program had 2 of their messages, and 0 were not sent")
		require.Equal(t, "held", string(first.Bytes()), "it is the program's still")
		server.Release(first)
		server.Release(second)
		require.True(t, nextEvent(t, client.Events()).Ended())
		require.NoError(t, client.Close())
	})
}

// A peer that hangs up leaves the program nobody to answer.
func TestAShutdownDoesNotWaitForTheMessagesOfAConnectionThatEnds(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 64})
		say(t, client, "held")
		b := take(t, server)
		down := make(chan error, 1)
		go func() { down <- l.Shutdown(context.Background()) }()
		require.Eventually(t, server.refuses.Load, patience, time.Millisecond)
		require.NoError(t, client.Close())
		err := answer(t, down)
		require.ErrorIs(t, err, hw.ErrInvalidState, "Debug names the buffer")
		server.Release(b)
	})
}

func TestAListenerThatIsStoppedKeepsItsConnections(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 64, Refusal: []byte("gone")})
		asked := make(chan error, 1)
		go func() {
			_, err := ia.Dial(within(t), l.Addr(), ConnConfig{})
			asked <- err
		}()
		require.Eventually(t, func() bool { return len(l.Requests()) > 0 }, patience, time.Millisecond)
		at := l.Addr()
		require.NoError(t, l.Stop())
		err := answer(t, asked)
		require.ErrorIs(t, err, event.Error(event.PeerRejected), "it has not been accepted")
		ev := nextEvent(t, l.Requests())
		for ev.Number != event.Closed { // the request that was rejected
			ev = nextEvent(t, l.Requests())
		}
		_, err = l.Accept(nil, nil)
		requireCode(t, err, hw.InvalidHandle, hw.HandlePSP)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = l.Dial(at, nil)
		requireCode(t, err, hw.InvalidHandle, hw.HandlePSP)
		_, err = ia.Dial(within(t), at, ConnConfig{})
		require.Error(t, err, "nobody listens")
		require.NoError(t, l.Stop(), "again")

		say(t, client, "still")
		b := take(t, server)
		require.NoError(t, server.Send(b))
		assert.Equal(t, "still", hear(t, client))
		next, err := ia.Listen(within(t), at, ConnConfig{})
		require.NoError(t, err, "the address is free")
		require.NoError(t, next.Close())
		require.NoError(t, l.Shutdown(within(t)))
		require.NoError(t, l.Stop())
		require.NoError(t, client.Close())
		requireCode(t, (*Listener)(nil).Stop(), hw.InvalidHandle, hw.HandlePSP)
	})
}

func TestAShutdownBesideAMessageSeesItOrKeepsIt(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ia := open(t, "loop")
	yield.Interleave(func() (first, second, check func()) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		say(t, client, "a request")
		ev := nextEvent(t, server.Events())
		var b *mem.Buffer
		drained := make(chan drainResult, 1)
		return func() { b = server.Message(ev) }, func() { server.drain(ended, drained) }, func() {
			r := <-drained
			if b != nil {
				require.Equal(t, drainResult{conn: server, cut: true, held: 1}, r)
				require.NoError(t, server.Send(b))
				require.Equal(t, "a request", hear(t, client))
			}
			require.NoError(t, errors.Join(client.Close(), l.Close()))
		}
	})
}

func TestAShutdownBesideASendWaitsUntilItIsPosted(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	ia := open(t, "loop")
	yield.Interleave(func() (first, second, check func()) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		say(t, client, "a request")
		b := take(t, server)
		count := func() {
			r := drainResult{conn: server}
			if r.wait(ended); !r.cut {
				require.NotEmpty(t, client.Events(), "the message is still to be posted")
			}
		}
		return func() { require.NoError(t, server.Send(b)) }, count, func() {
			require.Equal(t, "a request", hear(t, client))
			require.NoError(t, errors.Join(client.Close(), l.Close()))
		}
	})
}

// What a server has handled, its client has the answer of; and no other request was handled.
func TestAShutdownUnderBusyClientsLosesNoAnswer(t *testing.T) {
	const clients = 200
	for name, own := range map[string]bool{"in the loop": true, "beside the loop": false} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				s := &busyServer{l: listen(t, ia, ConnConfig{Depth: 4, Message: 64, Conns: clients}), stop: make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- s.run() }()
				var all, warm sync.WaitGroup
				warm.Add(clients)
				got := make([]int, clients)
				for i := range clients {
					all.Go(func() {
						n, err := ask(t, ia, s.l.Addr(), i, warm.Done)
						assert.NoError(t, err)
						got[i] = n
					})
				}
				warm.Wait()
				if own {
					close(s.stop)
				} else {
					require.NoError(t, s.l.Shutdown(within(t)))
				}
				require.NoError(t, answer(t, served))
				all.Wait()
				s.handlers.Wait()
				for i := range clients {
					assert.EqualValues(t, s.handled[i].Load(), got[i], "client %d", i)
				}
			})
		})
	}
}

// busyServer answers each message in a goroutine.
type busyServer struct {
	l        *Listener
	stop     chan struct{}
	handlers sync.WaitGroup
	handled  [200]atomic.Int64 // by client
}

func (s *busyServer) run() error {
	for {
		select {
		case ev := <-s.l.Requests():
			if _, err := s.l.Accept(ep.RequestOf(ev), nil); err != nil && !errors.Is(err, net.ErrClosed) {
				return err
			}
		case ev := <-s.l.Events():
			c := ConnOf(ev)
			switch {
			case ev.Number == event.Closed:
				return nil
			case ev.Ended():
				if err := c.Close(); err != nil {
					return err
				}
			case ev.Op == hw.OpRecv:
				if b := c.Message(ev); b != nil {
					s.handlers.Go(func() { s.handle(c, b) })
				}
			}
		case <-s.stop:
			return s.l.Shutdown(context.Background())
		}
	}
}

func (s *busyServer) handle(c *Conn, b *mem.Buffer) {
	s.handled[b.Bytes()[0]].Add(1)
	_ = c.Send(b)
}

// ask sends requests, and returns how many answers came before the connection ended in order.
func ask(t testing.TB, ia *IA, address string, number int, warm func()) (answers int, err error) {
	c, err := ia.Dial(within(t), address, ConnConfig{Depth: 4, Message: 64})
	if err != nil {
		warm()
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for range 3 { // on their way at a time
		if err := c.SendBytes([]byte{byte(number)}); err != nil {
			return answers, err
		}
	}
	for ; ; answers++ {
		b, err := c.Receive(within(t))
		if answers == 0 {
			warm()
		}
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		if err = c.Send(b); err != nil {
			return answers, err
		}
	}
}
