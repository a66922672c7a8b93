package inspect

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	dat "godat/runtime"
)

// traced is a handler of a connection over iwarp that visitors may trace.
func traced(t *testing.T) (h *Handler, c, other *dat.Conn, dir string) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	ln, err := ia.Listen(t.Context(), "", dat.ConnConfig{Conns: 3})
	require.NoError(t, err)
	r := &rig{t, ia, ln, New(ia)}
	c, other = r.join()
	dir = filepath.Join(t.TempDir(), "traces")
	require.NoError(t, r.h.AllowTraces(dir))
	return r.h, c, other, dir
}

// post asks the handler to start or stop a trace of a connection.
func post(h *Handler, of, what string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/?of="+url.QueryEscape(of)+"&trace="+what, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

// told is what the page says of the trace of a connection.
func told(t *testing.T, h *Handler, of string) (trace *seenTrace, page string) {
	t.Helper()
	at := "/?of=" + url.QueryEscape(of)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at+"&format=json", nil))
	require.Equal(t, http.StatusOK, w.Code)
	var said struct{ Trace *seenTrace }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &said))
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, at, nil))
	return said.Trace, w.Body.String()
}

// awaitTraced waits until the only trace in dir has the text.
func awaitTraced(t *testing.T, dir, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		b, err := os.ReadFile(files[0])
		return err == nil && strings.Contains(string(b), text)
	}, time.Minute, time.Millisecond)
}

func TestAVisitorTracesAConnection(t *testing.T) {
	h, c, other, dir := traced(t)
	trace, page := told(t, h, c.String())
	assert.Nil(t, trace)
	assert.Contains(t, page, "<button>Trace it for 30 seconds</button>")
	w := post(h, c.String(), "start")
	require.Equal(t, http.StatusSeeOther, w.Code, w.Body.String())
	assert.NotContains(t, w.Header().Get("Location"), "trace")
	require.NoError(t, c.SendBytes([]byte("a message that is traced")))
	awaitTraced(t, dir, "a message that is traced") // another goroutine may write it to the socket
	_, page = told(t, h, c.String())
	assert.Contains(t, page, "Stop the trace")
	assert.Contains(t, page, "under way")
	assert.Equal(t, http.StatusConflict, post(h, other.String(), "start").Code, "one at a time")
	_, page = told(t, h, other.String())
	assert.Contains(t, page, "<button disabled>Trace it for 30 seconds</button> <span>Another trace is under way, of "+html.EscapeString(c.String())+".</span>")

	require.Equal(t, http.StatusSeeOther, post(h, c.String(), "stop").Code)
	trace, page = told(t, h, c.String())
	assert.True(t, trace.Over)
	assert.Empty(t, trace.Cause)
	assert.Contains(t, page, trace.File)
	files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
	require.NoError(t, err)
	require.Equal(t, []string{trace.File}, files)
	text, err := os.ReadFile(trace.File)
	require.NoError(t, err)
	assert.Contains(t, string(text), "a message that is traced")
	assert.EqualValues(t, len(text), trace.Bytes)
	require.Equal(t, http.StatusSeeOther, post(h, c.String(), "start").Code, "another one may begin")
	require.Equal(t, http.StatusSeeOther, post(h, c.String(), "stop").Code)
}

func TestAVisitorMayNotTraceWhatTheProgramDoesNotAllow(t *testing.T) {
	h, c, _, dir := traced(t)
	for _, c := range []struct {
		code int
		got  *httptest.ResponseRecorder
	}{
		{http.StatusMethodNotAllowed, post(New(h.adapters[0].ia), c.String(), "start")},
		{http.StatusForbidden, post(h, c.String(), "start", "Sec-Fetch-Site", "cross-site")},
		{http.StatusForbidden, post(h, c.String(), "start", "Origin", "https://elsewhere.example")},
		{http.StatusNotFound, post(h, "nobody", "start")},
		{http.StatusBadRequest, post(h, c.String(), "erase")},
		{http.StatusSeeOther, post(h, c.String(), "stop")}, // of nothing
	} {
		assert.Equal(t, c.code, c.got.Code, c.got.Body)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, files)
	trace, _ := told(t, h, c.String())
	assert.Nil(t, trace)
}

func TestAnEndpointWithoutAConnectionOffersNoTrace(t *testing.T) {
	h, _, _, _ := traced(t)
	ia := h.adapters[0].ia
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	idle, err := ia.NewEndpoint(ep.Config{PZ: pz})
	require.NoError(t, err)
	h.adapters[0].forget()
	name := idle.Snapshot().Name
	_, page := told(t, h, name)
	assert.Contains(t, page, "<button disabled>Trace it for 30 seconds</button> <span>It is not connected.</span>")
	assert.Equal(t, http.StatusConflict, post(h, name, "start").Code)
}

func TestAVisitorsTraceThatCanNotBeLeavesNoFile(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	dir := t.TempDir()
	require.NoError(t, r.h.AllowTraces(dir))
	s, err := r.ia.Snapshot()
	require.NoError(t, err)
	_, page := told(t, r.h, s.Conns[0].Name)
	assert.Contains(t, page, "<button disabled>Trace it for 30 seconds</button> <span>loop can&#39;t trace connections.</span>")
	w := post(r.h, s.Conns[0].Name, "start")
	assert.Equal(t, http.StatusConflict, w.Code)
	assert.Contains(t, w.Body.String(), "can't trace")
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Empty(t, files)
}

func TestAVisitorsTraceHasABound(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	require.NoError(t, err)
	tr := &trace{file: file, octets: largestTrace - 5}
	n, err := tr.Write([]byte("hello"))
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	_, err = tr.Write([]byte("!"))
	require.ErrorIs(t, err, errTraceFull)
	require.ErrorIs(t, tr.Close(), errTraceFull)
	s := tr.seen()
	assert.True(t, s.Over && s.Bytes == largestTrace && strings.Contains(s.Cause, "64 MiB"))
}
