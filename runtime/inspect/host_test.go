package inspect

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// asked asks a handler at a local address by a name.
func asked(h http.Handler, method, local, host string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/?measure=0", nil)
	at, _ := net.ResolveTCPAddr("tcp", local)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestANameOfAnotherSiteDoesNotReachThePage(t *testing.T) {
	h := newRig(t, 0, dat.ConnConfig{}).h.LetMeasure().AllowHosts("Ops.example")
	const here, there = "127.0.0.1:6060", "192.0.2.1:6060"
	for _, c := range []struct {
		method, local, host string
		code                int
	}{
		{"GET", here, "evil.example", http.StatusForbidden},
		{"GET", here, "evil.example:6060", http.StatusForbidden},
		{"GET", here, "localhost.evil.example:6060", http.StatusForbidden},
		{"GET", here, "127.0.0.1.evil.example", http.StatusForbidden},
		{"GET", here, "", http.StatusForbidden},
		{"GET", "[::1]:6060", "evil.example", http.StatusForbidden},
		{"GET", here, "127.0.0.1:6060", http.StatusOK},
		{"GET", here, "localhost:6060", http.StatusOK},
		{"GET", here, "LOCALHOST", http.StatusOK},
		{"GET", "[::1]:6060", "[::1]:6060", http.StatusOK},
		{"GET", here, "ops.example", http.StatusOK},
		{"GET", there, "node7.example:6060", http.StatusOK},
		{"POST", there, "evil.example:6060", http.StatusForbidden},
		{"POST", here, "evil.example:6060", http.StatusForbidden},
		{"POST", there, "192.0.2.1:6060", http.StatusSeeOther},
		{"POST", there, "ops.example", http.StatusSeeOther},
	} {
		w := asked(h, c.method, c.local, c.host, "Origin", "http://"+c.host)
		if c.host == "" {
			w = asked(h, c.method, c.local, c.host)
		}
		assert.Equal(t, c.code, w.Code, "%s of %s at %s", c.method, c.host, c.local)
		if c.code == http.StatusForbidden {
			assert.Contains(t, w.Body.String(), "have the program allow the name (inspect.Handler.AllowHosts)")
			assert.NotContains(t, w.Body.String(), "connections")
		}
	}
}

func TestAPageOfAnotherSiteIsRefusedWhateverItAsks(t *testing.T) {
	h := newRig(t, 0, dat.ConnConfig{}).h.LetMeasure()
	for _, method := range []string{"GET", "POST"} {
		w := asked(h, method, "127.0.0.1:6060", "127.0.0.1:6060", "Origin", "http://evil.example")
		assert.Equal(t, http.StatusForbidden, w.Code)
		assert.Equal(t, "another site's page asks for this one: \"http://evil.example\"\n", w.Body.String())
		assert.Equal(t, http.StatusForbidden, asked(h, method, "127.0.0.1:6060", "127.0.0.1:6060", "Origin", "null").Code)
		for _, site := range []string{"cross-site", "same-site", "none"} {
			assert.Equal(t, http.StatusForbidden, asked(h, method, "127.0.0.1:6060", "127.0.0.1:6060", "Origin", "null", "Sec-Fetch-Site", site).Code)
		}
		own := asked(h, method, "127.0.0.1:6060", "127.0.0.1:6060", "Origin", "null", "Sec-Fetch-Site", "same-origin")
		assert.NotEqual(t, http.StatusForbidden, own.Code, "a browser names no origin in a POST of this page's own")
	}
}

func TestAPageWithoutAHostIsOnLoopback(t *testing.T) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer ia.Close()
	url, err := Serve(t.Context(), ":0", "", ia)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(url, "http://127.0.0.1:"), url)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	assert.Contains(t, string(body), `the page is not at the name "evil.example"`)
	assert.Equal(t, "0.0.0.0:6060", onLoopback("0.0.0.0:6060"))
}
