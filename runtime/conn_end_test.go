package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestTheEndOfAConnectionGivesItsPlaceBack(t *testing.T) {
	for name, apart := range map[string]bool{"one channel": false, "a channel each": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l := listen(t, ia, ConnConfig{Depth: 1, Conns: 1, Apart: apart})
				for range 3 {
					dialed := make(chan *Conn, 1)
					go func() {
						c, err := ia.Dial(within(t), l.Addr(), ConnConfig{Depth: 1})
						assert.NoError(t, err)
						dialed <- c
					}()
					server := accept(t, l)
					require.Equal(t, event.Established, nextEvent(t, server.Events()).Number)
					require.NoError(t, (<-dialed).Close())
					if apart {
						_, err := server.Receive(within(t))
						require.Error(t, err)
						continue
					}
					end := nextEvent(t, server.Events())
					for !end.Ended() {
						end = nextEvent(t, server.Events())
					}
					_, err := l.Dial(l.Addr(), nil)
					requireCode(t, err, hw.InsufficientResources, hw.ResourceTEP)
					require.Equal(t, server, ConnOf(end))
					require.Equal(t, server, ConnOf(end), "again: there is one place to give back")
				}
				require.NoError(t, l.Close(), "it closes the connections that the program did not close")
			})
		})
	}
}

// endsOf counts the events in the channel, and how many of them are ends of c.
func endsOf(c *Conn, events <-chan event.Event) (ends int) {
	for {
		select {
		case ev, ok := <-events:
			if !ok {
				return ends
			}
			if ev.Ended() && ConnOf(ev) == c {
				ends++
			}
		default:
			return ends
		}
	}
}

func TestEachConnectionHasOneEndAlsoWhenItsOwnEndClosesIt(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, server, client *Conn){
		"this end closes":     func(t *testing.T, server, _ *Conn) { require.NoError(t, server.Close()) },
		"this end shuts down": func(t *testing.T, server, _ *Conn) { require.NoError(t, server.Shutdown(within(t))) },
		"both ends close": func(t *testing.T, server, client *Conn) {
			go func() { _ = client.Close() }()
			require.NoError(t, server.Close())
		},
		"closed after the end": func(t *testing.T, server, client *Conn) {
			require.NoError(t, client.Close())
			<-server.ended
			require.NoError(t, server.Close())
		},
	} {
		for kind, apart := range map[string]bool{"one channel": false, "a channel each": true} {
			t.Run(name+", "+kind, func(t *testing.T) {
				onEach(t, func(t *testing.T, ia *IA) {
					for range 5 {
						l, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 64, Apart: apart})
						for range 3 {
							say(t, client, "a message on its way")
						}
						leave(t, server, client)
						require.NoError(t, server.Close())
						require.Equal(t, 1, endsOf(server, server.Events()), "the end is there when Close returns")
						require.NoError(t, client.Close())
						require.Equal(t, 1, endsOf(client, client.Events()))
						require.NoError(t, l.Close())
					}
				})
			})
		}
	}
}

func TestADialThatIsClosedHasOneEnd(t *testing.T) {
	onTwo(t, func(t *testing.T, server, client *IA) {
		there, here := listen(t, server, ConnConfig{}), listen(t, client, ConnConfig{})
		c, err := here.Dial(there.Addr(), nil)
		require.NoError(t, err)
		require.NoError(t, c.Close(), "the peer has not answered")
		require.Equal(t, 1, endsOf(c, here.Events()))
		require.NoError(t, there.Close())
		require.NoError(t, here.Close())
	})
}
