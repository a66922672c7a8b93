package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// A Conn that dials the port of another protocol is told whose it is, and the error is the
// reject's all the same. Clients of that protocol are not told.
func TestADialOfAServersPortSaysWhoListensThere(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		t.Run(name, func(t *testing.T) {
			ia, err := dat.Open(ctx, name)
			require.NoError(t, err)
			defer ia.Close()
			calls, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{})
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- calls.Serve(ctx, 1, func(*rpc.Request) ([]byte, error) { return nil, nil }) }()
			streams, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
			require.NoError(t, err)
			go func() {
				for {
					if _, err := streams.Accept(); err != nil {
						return
					}
				}
			}()
			for address, who := range map[string]string{calls.Addr(): "package rpc", streams.Addr().String(): "package stream"} {
				_, err := ia.Dial(ctx, address, dat.ConnConfig{})
				require.ErrorIs(t, err, event.Error(event.PeerRejected))
				assert.ErrorContains(t, err, who)
			}
			require.NoError(t, streams.Close())
			require.NoError(t, calls.Close())
			assert.NoError(t, <-served, "it ends by the close")
		})
	}
}
