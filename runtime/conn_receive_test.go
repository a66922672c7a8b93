package runtime

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestEveryReceiveBehindTheEndReturnsTheEnd(t *testing.T) {
	for name, kind := range map[string]struct {
		end func(t *testing.T, server *Conn)
		is  error
	}{
		"in order": {func(t *testing.T, server *Conn) {
			require.NoError(t, server.SendBytes([]byte("last")))
			require.NoError(t, server.Shutdown(within(t)))
		}, io.EOF},
		"broken": {func(t *testing.T, server *Conn) {
			require.NoError(t, server.SendBytes([]byte("last")))
			require.NoError(t, server.SendBytes(make([]byte, 128)), "which is longer than the client takes")
		}, event.Error(event.Broken)},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l := listen(t, ia, ConnConfig{Message: 128})
				accepted := make(chan *Conn, 1)
				go func() { accepted <- accept(t, l) }()
				client := dial(t, ia, l, ConnConfig{Message: 64})
				server := <-accepted
				require.Equal(t, event.Established, nextEvent(t, server.Events()).Number)

				const calls = 3 // which wait for the end together
				errs := make(chan error, calls)
				for range calls {
					go func() {
						for {
							b, err := client.Receive(within(t))
							if err != nil {
								errs <- err
								return
							}
							assert.Equal(t, "last", string(b.Bytes()))
							client.Release(b)
						}
					}()
				}
				kind.end(t, server)
				first := <-errs
				require.ErrorIs(t, first, kind.is)
				for range calls - 1 {
					assert.Equal(t, first, <-errs)
				}
				_, err := client.Receive(within(t))
				assert.Equal(t, first, err, "a call that begins behind the end")

				require.NoError(t, client.Close())
				_, err = client.Receive(within(t))
				requireCode(t, err, hw.InvalidHandle, hw.HandleEP)
				require.NoError(t, l.Close())
			})
		})
	}
}

func TestReceivesEndWithACloseBehindAnEndThatTheProgramTook(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{})
		require.NoError(t, server.Close())
		require.Equal(t, client, ConnOf(nextEvent(t, client.Events())))
		receive := func() error {
			_, err := client.Receive(within(t))
			return err
		}
		first, second := inBackground(receive), inBackground(receive)
		require.NoError(t, client.Close())
		require.ErrorIs(t, answer(t, first), net.ErrClosed)
		require.ErrorIs(t, answer(t, second), net.ErrClosed)
		require.NoError(t, l.Close())
	})
}
