package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestWithTraceLeavesAFileOfEachEndOfAConnection(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	params := map[string]string{"mpa": "4s"}
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1", dat.WithTrace(dir), dat.WithParams(params))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"mpa": "4s"}, params)
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Apart: true})
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		accepted <- err
	}()
	_, err = ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	require.NoError(t, ia.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

// closing is a file that says when it is closed.
type closing struct {
	bytes.Buffer
	closed chan struct{}
}

func (c *closing) Close() error { close(c.closed); return nil }

func TestATraceOfOneConnectionHasWhatItCarriesUntilItsEnd(t *testing.T) {
	client, server := connected(t, "iwarp:127.0.0.1")
	file := &closing{closed: make(chan struct{})}
	stop, err := server.Endpoint.Trace(file)
	require.NoError(t, err)
	_, err = server.Endpoint.Trace(file)
	require.ErrorIs(t, err, hw.ErrInvalidState)
	require.NoError(t, client.SendBytes([]byte("a message behind the beginning")))
	server.Release(server.Message(<-server.Events()))
	require.NoError(t, client.Close())
	<-file.closed
	require.NoError(t, stop())
	assert.Contains(t, file.String(), "a message behind the beginning")
	require.True(t, (<-server.Events()).Ended())
	_, err = server.Endpoint.Trace(file)
	require.ErrorIs(t, err, hw.ErrInvalidState)
}

func TestATraceThatCanNotBeIsRefused(t *testing.T) {
	client, _ := connected(t, "loop")
	_, err := client.Endpoint.Trace(&closing{})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = client.Endpoint.Trace(nil)
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	require.NoError(t, client.Close())
	_, err = client.Endpoint.Trace(&closing{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	_, err = (*ep.Endpoint)(nil).Trace(&closing{})
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}

// connected are the two ends of a connection of that adapter to itself.
func connected(t *testing.T, name string) (client, server *dat.Conn) {
	t.Helper()
	ia, err := dat.Open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Apart: true})
	require.NoError(t, err)
	accepted := make(chan *dat.Conn, 1)
	go func() {
		c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		assert.NoError(t, err)
		accepted <- c
	}()
	client, err = ia.Dial(t.Context(), ln.Addr(), dat.ConnConfig{})
	require.NoError(t, err)
	server = <-accepted
	require.Equal(t, event.Established, (<-server.Events()).Number)
	return client, server
}

func TestAProviderWithoutTracesRefusesWithTrace(t *testing.T) {
	_, err := dat.Open(context.Background(), "loop", dat.WithTrace(t.TempDir()))
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
}
