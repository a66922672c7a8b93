package inspect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

func TestAProgramServesThePageUntilItsContextEnds(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	ctx, stop := context.WithCancel(t.Context())
	url, err := Serve(ctx, "127.0.0.1:0", "", ia)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(body), "This is a first look")
	_, err = Serve(ctx, url[len("http://"):len(url)-1], "", ia)
	require.ErrorContains(t, err, "this process has a page at "+url[len("http://"):len(url)-1]+" already; give this one another address")
	stop()
	require.Eventually(t, func() bool {
		answer, err := client.Get(url)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
	url, err = Serve(t.Context(), "", "", ia)
	require.NoError(t, err)
	assert.Empty(t, url)
}

func TestAPageOfNoAdapterIsRefused(t *testing.T) {
	for _, ias := range [][]*dat.IA{nil, {nil}} {
		url, err := Serve(t.Context(), "127.0.0.1:0", "", ias...)
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
		assert.ErrorContains(t, err, "runtime.Open opens one")
		assert.Empty(t, url)
		url, err = Serve(t.Context(), "", "", ias...)
		require.NoError(t, err)
		assert.Empty(t, url)
	}
}

func TestAPageOfANilContextIsRefused(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	dir := filepath.Join(t.TempDir(), "traces")
	var none context.Context
	url, err := Serve(none, "127.0.0.1:0", dir, ia)
	require.ErrorIs(t, err, hw.ErrInvalidParameter)
	assert.ErrorContains(t, err, "inspect.Serve")
	assert.ErrorContains(t, err, "a nil context")
	assert.Empty(t, url)
	assert.NoDirExists(t, dir)
}

func TestAProgramLetsVisitorsTraceIntoItsDirectory(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	dir := filepath.Join(t.TempDir(), "traces")
	_, err := Serve(t.Context(), "", dir, r.ia)
	require.ErrorIs(t, err, errNoPage)
	assert.NoDirExists(t, dir)
	require.NoError(t, os.WriteFile(dir+"-not", nil, 0o600))
	_, err = Serve(t.Context(), "127.0.0.1:0", dir+"-not", r.ia)
	require.Error(t, err, "it is a file")

	page, err := Serve(t.Context(), "127.0.0.1:0", dir, r.ia)
	require.NoError(t, err)
	assert.DirExists(t, dir)
	s, err := r.ia.Snapshot()
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(page + "?of=" + url.QueryEscape(s.Conns[0].Name))
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	assert.Contains(t, string(body), "Trace it for 30 seconds")
}
