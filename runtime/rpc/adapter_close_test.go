package rpc

import (
	"testing"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// A handler hears by its request's context that the server's adapter is closed.
func TestACloseOfTheAdapterEndsServeAndItsHandlers(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		server, err := dat.Open(t.Context(), ia.Name())
		require.NoError(t, err)
		s, err := Listen(t.Context(), server, ":0", Config{})
		require.NoError(t, err)
		handling, served := make(chan struct{}), make(chan error, 1)
		go func() {
			served <- s.Serve(t.Context(), 1, func(r *Request) ([]byte, error) {
				close(handling)
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		}()
		c := dial(t, ia, s, Config{})
		failed := called(t.Context(), c, 1)
		<-handling
		require.NoError(t, server.Close())
		select {
		case err := <-served:
			require.NoError(t, err)
		case <-within(t).Done():
			t.Fatal("the handler waits for ever")
		}
		require.ErrorIs(t, <-failed, ErrEnded)
		require.NoError(t, s.Close())
	})
}
