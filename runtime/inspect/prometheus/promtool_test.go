//go:build promtool

package prometheus

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// promtool is the tool of Debian's package prometheus.
func promtool(t *testing.T, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), "promtool", args...)
}

func TestPromtoolFindsNothingWrongWithTheRules(t *testing.T) {
	said, err := promtool(t, "check", "rules", "docs/alerts.yaml").CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "SUCCESS")
}

func TestPromtoolFindsNothingWrongWithAScrape(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp", dat.WithLatency())
	require.NoError(t, err)
	s, err := rpc.Listen(t.Context(), ia, "127.0.0.1:0", rpc.Config{Methods: map[uint16]string{1: "get"}})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(context.Background(), 1, func(*rpc.Request) ([]byte, error) { return nil, nil })
	}()
	c, err := rpc.Dial(t.Context(), ia, s.Addr(), rpc.Config{})
	require.NoError(t, err)
	for method := range uint16(100) {
		_, err = c.Call(t.Context(), rpc.Call{Method: method}, nil)
		require.NoError(t, err)
	}
	registry := client.NewPedanticRegistry()
	registry.MustRegister(New(ia))
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `godat_rpc_call_duration_seconds_bucket{adapter="iwarp"`)
	check := promtool(t, "check", "metrics")
	check.Stdin = w.Body
	said, err := check.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Empty(t, string(said))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
	require.NoError(t, ia.Close())
}
