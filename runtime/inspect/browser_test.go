//go:build chromium

package inspect

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// TestABrowserRunsTheScriptOfThePage needs the program chromium. The page's policy lets its
// script run, and the script renews the page.
func TestABrowserRunsTheScriptOfThePage(t *testing.T) {
	r := newRig(t, 2, dat.ConnConfig{})
	var visits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/" { // and not /favicon.ico
			visits.Add(1)
			r.h.ServeHTTP(w, q)
		}
	}))
	defer server.Close()
	dom, err := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", server.URL).Output()
	require.NoError(t, err)
	assert.Contains(t, string(dom), `<button id="renew">Stop</button>`, "the script has shown the button")
	assert.NotRegexp(t, "<time[^>]*>not renewed", string(dom))
	assert.Contains(t, string(dom), "(dial 2)")
	assert.GreaterOrEqual(t, visits.Load(), int64(2), "the page was renewed")
}
