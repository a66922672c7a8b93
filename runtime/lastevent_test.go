package runtime

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// closers are the ways to close a listener.
var closers = map[string]func(l *Listener) error{
	"Close":    (*Listener).Close,
	"Shutdown": func(l *Listener) error { return l.Shutdown(context.Background()) },
	"IA.Close": func(l *Listener) error { return l.ia.Close() },
}

// drained takes what is in a channel, which must stay open.
func drained(t testing.TB, events <-chan event.Event, batches <-chan *evd.Batch) (evs []event.Event) {
	t.Helper()
	for {
		select {
		case ev, ok := <-events:
			require.True(t, ok, "the channel is closed")
			evs = append(evs, ev)
		case b, ok := <-batches:
			require.True(t, ok, "the channel is closed")
			evs = append(evs, b.Events()...)
			b.Release()
		default:
			return evs
		}
	}
}

// Each channel of a Listener or a Conn ends with one Closed, and stays open behind it.
func TestEachChannelEndsWithOneClosedWhateverClosesIt(t *testing.T) {
	for name, end := range closers {
		for _, apart := range []bool{false, true} {
			for _, batches := range []bool{false, true} {
				for provider, open := range providers {
					t.Run(fmt.Sprintf("%s, Apart=%v, Batches=%v, %s", name, apart, batches, provider), func(t *testing.T) {
						ia := open(t)
						cfg := ConnConfig{Depth: 2, Message: 64, Apart: apart, Batches: batches}
						l := listen(t, ia, cfg)
						accepted, err := l.Dial(l.Addr(), nil)
						require.NoError(t, err)
						accept(t, l)
						dialed := dialItself(t, l, cfg)
						require.NoError(t, end(l))
						require.NoError(t, l.Close(), "it takes no event away")
						require.NoError(t, dialed.Close())

						for owner, evs := range map[any][]event.Event{
							l:        drained(t, l.Requests(), nil),
							accepted: drained(t, accepted.Events(), accepted.Batches()),
							dialed:   drained(t, dialed.Events(), dialed.Batches()),
						} {
							require.NotEmpty(t, evs)
							for i, ev := range evs {
								assert.Equal(t, i == len(evs)-1, ev.Number == event.Closed, "%v: %v", owner, evs)
							}
							last := evs[len(evs)-1]
							if last.Source != any(l) { // as of a channel that is shared
								assert.Equal(t, owner, last.Source)
							}
							assert.True(t, last.Ended())
							assert.Nil(t, ConnOf(last))
							require.ErrorIs(t, last.Err(), net.ErrClosed)
						}
					})
				}
			}
		}
	}
}

// dialItself connects the listener's adapter to the listener, by IA.Dial.
func dialItself(t testing.TB, l *Listener, cfg ConnConfig) *Conn {
	t.Helper()
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
		accepted <- err
	}()
	c := dial(t, l.ia, l, cfg)
	require.NoError(t, <-accepted)
	return c
}

// A select with the channels of a listener that is closed elsewhere sleeps, and a loop
// over one channel is told.
func TestASelectSleepsOnceItsListenerIsClosed(t *testing.T) {
	for name, end := range closers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ia, err := Open(t.Context(), "loop")
				require.NoError(t, err)
				l, err := ia.Listen(t.Context(), "", ConnConfig{})
				require.NoError(t, err)
				stop := make(chan struct{})
				var seen []string
				go func() {
					for {
						select {
						case ev := <-l.Requests():
							_, err := l.Accept(ep.RequestOf(ev), nil)
							assert.ErrorIs(t, err, net.ErrClosed)
							requireCode(t, err, hw.InvalidHandle, hw.HandlePSP)
							seen = append(seen, "request")
						case ev := <-l.Events():
							assert.Equal(t, event.Closed, ev.Number)
							seen = append(seen, "event")
						case <-stop:
							return
						}
					}
				}()
				require.NoError(t, end(l))
				synctest.Wait()
				assert.ElementsMatch(t, []string{"request", "event"}, seen)
				close(stop)
				require.NoError(t, ia.Close())
				synctest.Wait()
			})
		})
	}
}

func TestAReceiveEndsWithItsConnectionWhateverClosesIt(t *testing.T) {
	for name, end := range closers {
		for provider, open := range providers {
			t.Run(name+", "+provider, func(t *testing.T) {
				ia := open(t)
				l := listen(t, ia, ConnConfig{Apart: true})
				c, err := l.Dial(l.Addr(), nil)
				require.NoError(t, err)
				receive := func() error {
					_, err := c.Receive(within(t))
					return err
				}
				first, second := inBackground(receive), inBackground(receive)
				require.NoError(t, end(l))
				require.Error(t, answer(t, first))
				require.Error(t, answer(t, second))
				require.ErrorIs(t, receive(), net.ErrClosed)
			})
		}
	}
}

// inBackground runs f in another goroutine.
func inBackground(f func() error) <-chan error {
	outcome := make(chan error, 1)
	go func() { outcome <- f() }()
	return outcome
}

// However many peers wait for an answer when the listener goes, each hears the refusal.
func TestAllWhoWaitAreRefusedWithTheRefusal(t *testing.T) {
	const n = 100 // more than a channel holds
	for name, end := range closers {
		for provider, open := range providers {
			if provider == "sim" && name == "IA.Close" { // the peers are on the same adapter
				continue
			}
			t.Run(name+", "+provider, func(t *testing.T) {
				ia := open(t)
				peers := ia
				if provider != "sim" {
					peers = open(t)
				}
				pz, err := peers.NewPZ()
				require.NoError(t, err)
				events, err := peers.NewDispatcher(channel(2 * n))
				require.NoError(t, err)
				l := listen(t, ia, ConnConfig{Refusal: []byte("gone; ask 10.0.0.7")})
				for range n {
					e, err := peers.NewEndpoint(ep.Config{PZ: pz, Conn: events})
					require.NoError(t, err)
					require.NoError(t, e.CommonConnect(l.Addr(), ep.ConnectConfig{}))
				}
				waitForRequests(t, ia, n)
				require.NoError(t, end(l))
				for range n {
					ev := nextEvent(t, events.C())
					require.Equal(t, event.PeerRejected, ev.Number, "%v", ev)
					require.Equal(t, "gone; ask 10.0.0.7", string(ev.Private()))
				}
			})
		}
	}
}

func TestARefusalThatIsTooLongIsRefusedByListen(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		_, err := ia.Listen(within(t), localhost(ia), ConnConfig{Refusal: make([]byte, ia.Attr().MaxPrivate+1)})
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
	})
}

// Closed comes once, so of several goroutines at one channel the one that gets it tells the others.
func TestSeveralReadersOfAChannelEndByTheWordOfTheOneThatGetsClosed(t *testing.T) {
	for name, end := range closers {
		for provider, open := range providers {
			t.Run(name+", "+provider, func(t *testing.T) {
				l := listen(t, open(t), ConnConfig{})
				over, last := make(chan struct{}), make(chan event.Event, 4)
				var all sync.WaitGroup
				for range cap(last) {
					all.Go(func() {
						for {
							select {
							case ev := <-l.Events():
								if ev.Number == event.Closed {
									last <- ev
									close(over)
									return
								}
							case <-over:
								return
							}
						}
					})
				}
				require.NoError(t, end(l))
				all.Wait()
				assert.Len(t, last, 1)
				require.NoError(t, l.Close())
			})
		}
	}
}
