package runtime

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

func TestADialWithoutAnAnswerEndsWithItsTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		mute := listen(t, ia, ConnConfig{}) // its program never answers
		deaf := mute.Addr()
		if ia.attr.Provider == "iwarp" {
			ln, err := net.Listen("tcp", "127.0.0.1:0") // nor does this one's provider
			require.NoError(t, err)
			defer ln.Close()
			deaf = ln.Addr().String()
		}
		cfg := ConnConfig{Timeout: 20 * time.Millisecond}
		_, err := ia.Dial(t.Context(), deaf, cfg)
		require.ErrorIs(t, err, event.Error(event.TimedOut))
		l := listen(t, ia, cfg)
		c, err := l.Dial(deaf, nil)
		require.NoError(t, err)
		ev := nextEvent(t, l.Events())
		assert.Equal(t, event.TimedOut, ev.Number)
		assert.True(t, ev.Ended())
		assert.Same(t, c, ConnOf(ev))
		require.NoError(t, l.Close())
		require.NoError(t, mute.Close())
	})
}

func TestADialHasATimeoutUnlessTheProgramWantsNone(t *testing.T) {
	device := open(t, "loop").Attr()
	for set, want := range map[time.Duration]time.Duration{0: 30 * time.Second, -1: 0, time.Second: time.Second} {
		cfg := ConnConfig{Timeout: set}
		require.NoError(t, cfg.complete("test", device))
		assert.Equal(t, want, cfg.Timeout)
	}
}

func TestAnErrorOfAnAddressNamesTheCallOfTheProgramAlone(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		_, dial := ia.Dial(t.Context(), "nowhere", ConnConfig{})
		_, listening := ia.Listen(t.Context(), "no.such.host.invalid:1", ConnConfig{})
		l := listen(t, ia, ConnConfig{})
		_, dialing := l.Dial("nowhere", nil)
		require.NoError(t, l.Close())
		for name, err := range map[string]error{
			"runtime.Dial nowhere: ": dial, "runtime.Listen no.such.host.invalid:1: ": listening, "runtime.Listener.Dial nowhere: ": dialing,
		} {
			require.ErrorIs(t, err, hw.ErrInvalidAddress)
			assert.True(t, strings.HasPrefix(err.Error(), name), "%v", err)
			assert.NotContains(t, err.Error(), "ep.")
		}
	})
}

func TestConnectionsThatWereDialedToOneAddressHaveNamesOfTheirOwn(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Depth: 1, Message: 64})
		names := make(map[string]bool)
		for range 3 {
			c, err := l.Dial(l.Addr(), nil)
			require.NoError(t, err)
			assert.Contains(t, c.String(), l.Addr())
			names[c.String()] = true
			accept(t, l)
		}
		assert.Len(t, names, 3)
		require.NoError(t, l.Close())
	})
}

func TestAListenerDialsIntoItsOwnChannel(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Depth: 2, Message: 64, Conns: 2})
		client, err := l.Dial(l.Addr(), []byte("hi"))
		require.NoError(t, err)
		server := accept(t, l)
		assert.Equal(t, "hi", string(server.Private()))
		up := []*Conn{ConnOf(nextEvent(t, l.Events())), ConnOf(nextEvent(t, l.Events()))}
		assert.True(t, slices.Contains(up, client) && slices.Contains(up, server), "both, in whatever order")
		say(t, client, "there")
		require.Equal(t, "there", hear(t, server))
		_, err = l.Dial(l.Addr(), nil)
		require.ErrorIs(t, err, hw.ErrInsufficientResources)
		_, err = l.Dial("nowhere", nil)
		require.Error(t, err)
		require.NoError(t, l.Shutdown(within(t)))
		_, err = l.Dial(l.Addr(), nil)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	})
}

func TestAConnectionIsRefusedWithItsReason(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Depth: 1, Conns: 1, Refusal: []byte("full")})
		refused := make(chan error, 2)
		go func() {
			for range 2 {
				_, err := l.Accept(ep.RequestOf(<-l.Requests()), nil)
				refused <- err
			}
		}()
		c := dial(t, ia, l, ConnConfig{})
		_, err := ia.Dial(within(t), l.Addr(), ConnConfig{})
		require.ErrorIs(t, err, event.Error(event.PeerRejected))
		assert.ErrorContains(t, err, l.Addr())
		var cause *hw.Cause
		require.ErrorAs(t, err, &cause)
		assert.Equal(t, "full", string(cause.Private))
		require.NoError(t, <-refused)
		require.ErrorIs(t, <-refused, hw.ErrInsufficientResources)
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())

		_, err = ia.Dial(within(t), l.Addr(), ConnConfig{})
		require.Error(t, err, "nobody listens any more")
	})
}

func TestTheErrorOfADialHasWhatThePeerRejectedItWith(t *testing.T) {
	for _, said := range []string{"", "full; ask 10.0.0.7:4791"} {
		onEach(t, func(t *testing.T, ia *IA) {
			l := listen(t, ia, ConnConfig{})
			rejected := make(chan error, 1)
			go func() { rejected <- ep.RequestOf(<-l.Requests()).Reject([]byte(said)) }()
			_, err := ia.Dial(within(t), l.Addr(), ConnConfig{})
			require.NoError(t, <-rejected)
			require.ErrorIs(t, err, event.Error(event.PeerRejected))
			var cause *hw.Cause
			require.ErrorAs(t, err, &cause)
			assert.Equal(t, said, string(cause.Private))
			require.NoError(t, l.Close())
		})
	}
}

func TestADialThatItsOwnSideEndsInOrderFails(t *testing.T) {
	for name, end := range map[string]func(c *Conn) error{
		"Close":               (*Conn).Close,
		"Shutdown":            func(c *Conn) error { return c.Shutdown(context.Background()) },
		"graceful Disconnect": func(c *Conn) error { return c.Endpoint.Disconnect(ep.Graceful) },
		"abrupt Disconnect":   func(c *Conn) error { return c.Endpoint.Disconnect(ep.Abrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l := listen(t, ia, ConnConfig{}) // its program never answers
				for range 10 {
					made := make(chan *Conn, 1)
					ended := make(chan error, 1)
					go func() {
						c := <-made
						<-l.Requests()
						ended <- end(c)
					}()
					c, err := ia.Dial(within(t), l.Addr(), ConnConfig{Setup: func(c *Conn) ([]byte, error) {
						made <- c
						return nil, nil
					}})
					require.Nil(t, c)
					requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
					require.ErrorIs(t, err, net.ErrClosed)
					assert.ErrorContains(t, err, l.Addr())
					require.NoError(t, answer(t, ended))
				}
				require.NoError(t, l.Close())
			})
		})
	}
}

// A peer's orderly end before its answer is not what a provider reports today. A program
// gets no connection of it all the same.
func TestADialWhoseConnectionEndedBeforeItWasUpFails(t *testing.T) {
	byPeer := &hw.Cause{Text: "the peer disconnected", Found: hw.SidePeer}
	err := neverUp(event.ConnectionEnd(door.Key{}, event.Disconnected, nil, nil, byPeer))
	require.ErrorIs(t, err, event.Error(event.Disconnected))
	require.ErrorIs(t, err, byPeer)
	err = neverUp(event.ConnectionEnd(door.Key{}, event.Disconnected, nil, nil, nil))
	require.ErrorIs(t, err, net.ErrClosed)
	err = neverUp(event.ConnectionEnd(door.Key{}, event.TimedOut, nil, nil, nil))
	require.ErrorIs(t, err, event.Error(event.TimedOut))
}

func TestDialEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{})
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		go func() {
			<-l.Requests()
			cancel(why)
		}()
		_, err := ia.Dial(ctx, l.Addr(), ConnConfig{})
		require.ErrorIs(t, err, why)
		_, err = ia.Listen(ctx, "", ConnConfig{})
		require.ErrorIs(t, err, why)
		require.NoError(t, l.Close())
	})
}

func TestAnImpossibleAddressOrSizeIsRefused(t *testing.T) {
	ia := open(t, "loop")
	ctx := within(t)
	for _, address := range []string{"nowhere", "host:port", "host:1:2"} {
		_, err := ia.Listen(ctx, address, ConnConfig{})
		require.ErrorIs(t, err, hw.ErrInvalidAddress, address)
		_, err = ia.Dial(ctx, address, ConnConfig{})
		require.ErrorIs(t, err, hw.ErrInvalidAddress, address)
	}
	first, err := ia.Listen(ctx, ":77", ConnConfig{})
	require.NoError(t, err)
	_, err = ia.Listen(ctx, ":77", ConnConfig{})
	require.ErrorIs(t, err, hw.ErrConnQualInUse)
	require.NoError(t, first.Close())
	for _, cfg := range []ConnConfig{{Depth: -1}, {Depth: 1 << 17}, {Message: -1}, {Conns: -1}, {Conns: 1 << 20}} {
		_, err := ia.Listen(ctx, "", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidParameter, "%+v", cfg)
	}
	_, err = (*IA)(nil).Dial(ctx, "", ConnConfig{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = (*IA)(nil).Listen(ctx, "", ConnConfig{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.NoError(t, ia.CloseGraceful())
}
