package inspect

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestAProgramServesThePageUntilItsContextEnds(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	ctx, stop := context.WithCancel(t.Context())
	url, err := Serve(ctx, "127.0.0.1:0", ia)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(body), "Nothing is wrong")
	_, err = Serve(ctx, url[len("http://"):len(url)-1], ia)
	require.Error(t, err, "the address is taken")
	stop()
	require.Eventually(t, func() bool {
		answer, err := client.Get(url)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond)
	url, err = Serve(t.Context(), "", ia)
	require.NoError(t, err)
	assert.Empty(t, url)
}
