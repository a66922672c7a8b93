package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// onTwo runs a test on two adapters of each provider that can have both in one process.
func onTwo(t *testing.T, test func(t *testing.T, server, client *IA)) {
	for _, name := range []string{"loop", "iwarp"} {
		t.Run(name, func(t *testing.T) { test(t, open(t, name), open(t, name)) })
	}
}

// answer waits for the result of a call that another goroutine makes.
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
		nextEvent(t, l.Requests())
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
			_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{Setup: func(c *Conn) ([]byte, error) {
				made <- c
				return nil, nil
			}})
			dialed <- err
		}()
		nextEvent(t, l.Requests())
		require.NoError(t, (<-made).Close())
		requireCode(t, answer(t, dialed), hw.InvalidHandle, hw.HandleEP)
		require.NoError(t, l.Close())
		require.NoError(t, client.CloseGraceful())
	})
}

func TestAShutdownThatWaitsEndsWithItsAdapter(t *testing.T) {
	for name, send := range map[string]func(c *Conn){
		"for a message": func(c *Conn) { say(t, c, "two") },
		"for the program": func(c *Conn) {
			b := c.Buffer()
			t.Cleanup(func() { c.Release(b) })
		},
		"for a send of the program's": func(c *Conn) {
			m, err := c.Alloc(8, hw.LocalRead)
			require.NoError(t, err)
			require.NoError(t, c.Endpoint.PostSend(1, hw.Default, m.Segment(0, 8)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := open(t, "loop"), open(t, "loop")
			cfg := ConnConfig{Depth: 1, Message: 64, Attr: &ep.Attr{ReceiverNotReady: time.Hour}}
			l := listen(t, server, cfg)
			go func() { _, _ = l.Accept(ep.RequestOf(<-l.Requests()), nil) }()
			c := dial(t, client, l, cfg)
			up := ConnOf(nextEvent(t, l.Events()))
			say(t, c, "one")
			nextEvent(t, up.Events()) // the receive is not posted once more
			send(c)
			down := make(chan error, 2)
			go func() { down <- c.Shutdown(context.Background()) }()
			require.Eventually(t, c.refuses.Load, patience, time.Millisecond)
			require.NoError(t, client.Close())
			if err := answer(t, down); name != "for the program" { // whose buffer it names
				require.NoError(t, err)
			}
			require.NoError(t, l.Close())
		})
	}
}

func TestAListenersCloseWaitsForTheConnectionsBeingMade(t *testing.T) {
	calls := map[string]func(l *Listener) error{
		"dial": func(l *Listener) error {
			_, err := l.Dial(l.Addr(), nil)
			return err
		},
		"accept": func(l *Listener) error {
			_, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			onTwo(t, func(t *testing.T, server, client *IA) {
				begun, goOn := make(chan struct{}), make(chan struct{})
				l := listen(t, server, ConnConfig{Setup: func(*Conn) ([]byte, error) {
					begun <- struct{}{}
					<-goOn
					return nil, nil
				}})
				if name == "accept" {
					go func() { _, _ = client.Dial(t.Context(), l.Addr(), ConnConfig{}) }()
				}
				made, closed := make(chan error, 1), make(chan error, 2)
				go func() { made <- call(l) }()
				<-begun
				for range 2 {
					go func() { closed <- l.Close() }()
				}
				require.Eventually(t, func() bool {
					l.mu.Lock()
					defer l.mu.Unlock()
					return l.closed
				}, patience, time.Millisecond)
				_, err := l.Dial(l.Addr(), nil)
				requireCode(t, err, hw.InvalidHandle, hw.HandlePSP)
				require.Empty(t, closed, "a connection is being made")
				close(goOn)
				require.NoError(t, answer(t, made))
				require.NoError(t, answer(t, closed))
				require.NoError(t, answer(t, closed))
				require.NoError(t, server.CloseGraceful())
			})
		})
	}
}

func TestAListenerClosesBesideItsOwnDials(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		for range 30 {
			l := listen(t, ia, ConnConfig{Depth: 2, Message: 64})
			dialed := make(chan error, 1)
			go func() {
				for i := 0; ; i++ {
					c, err := l.Dial(l.Addr(), nil)
					if err != nil {
						dialed <- err
						return
					}
					if i >= 64 { // the listener has places for a limited number of dials
						_ = c.Close()
					}
				}
			}()
			require.NoError(t, l.Close())
			requireCode(t, answer(t, dialed), hw.InvalidHandle, hw.HandlePSP)
		}
	})
}

func TestAListenersCloseThatFailedSucceedsWhenItIsTriedAgain(t *testing.T) {
	for _, kind := range []string{"listener", "queue pair", "region", "zone"} {
		t.Run(kind, func(t *testing.T) {
			loop, ok := hw.Lookup("loop")
			require.True(t, ok)
			ia := open(t, "loop", WithProvider(&busy{Provider: loop, kind: kind}))
			l := listen(t, ia, ConnConfig{})
			_, err := l.Dial(l.Addr(), nil)
			require.NoError(t, err)
			require.ErrorIs(t, l.Close(), errBusy)
			require.NoError(t, l.Close())
			require.NoError(t, ia.CloseGraceful())
		})
	}
}

func TestConnectionsRefuseWhatIsNilClosedOrAnotherAdapters(t *testing.T) {
	onTwo(t, func(t *testing.T, ia, other *IA) {
		var none context.Context
		_, err := ia.Dial(none, "", ConnConfig{})
		requireCode(t, err, hw.InvalidParameter, hw.Arg1)
		_, err = ia.Listen(none, "", ConnConfig{})
		requireCode(t, err, hw.InvalidParameter, hw.Arg1)

		foreign, err := other.NewPZ()
		require.NoError(t, err)
		closed, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		for _, pz := range []*mem.PZ{foreign, closed} {
			_, err = ia.Dial(within(t), "", ConnConfig{PZ: pz})
			requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
			_, err = ia.Listen(within(t), "", ConnConfig{PZ: pz})
			requireCode(t, err, hw.InvalidHandle, hw.HandlePZ)
		}
		most := int(^uint(0) >> 1)
		_, err = ia.Dial(within(t), "", ConnConfig{Attr: &ep.Attr{MaxRecvDTOs: most, MaxRequestDTOs: most}})
		require.ErrorIs(t, err, hw.ErrInvalidParameter)

		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		require.ErrorIs(t, client.Shutdown(none), hw.ErrInvalidParameter)
		require.ErrorIs(t, l.Shutdown(none), hw.ErrInvalidParameter)
		_, err = client.Receive(none)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)

		b := server.Buffer()
		require.ErrorIs(t, client.Send(b), hw.ErrInvalidParameter)
		require.ErrorIs(t, client.Queue(b), hw.ErrInvalidParameter)
		client.Release(b)
		say(t, client, "mine")
		ev := nextEvent(t, server.Events())
		require.Nil(t, client.Message(ev))
		server.Release(server.Message(ev))
		server.Release(b)
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
		require.NoError(t, ia.Close())
		_, err = ia.Dial(none, "nowhere", ConnConfig{Depth: -1})
		requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
		_, err = ia.Listen(none, "nowhere", ConnConfig{Depth: -1})
		requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	})
}
