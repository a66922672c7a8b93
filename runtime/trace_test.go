package runtime_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		_, err := ln.Accept(dat.RequestOf(<-ln.Requests()), nil)
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

func TestAProviderWithoutTracesRefusesWithTrace(t *testing.T) {
	_, err := dat.Open(context.Background(), "loop", dat.WithTrace(t.TempDir()))
	require.ErrorIs(t, err, dat.ErrInvalidParameter)
}
