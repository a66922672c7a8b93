//go:build chromium

package inspect

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// These tests need the program chromium.

// chromium is the program with these arguments, and with a profile of its own.
func chromium(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	profile, err := os.MkdirTemp("", "inspect")
	require.NoError(t, err)
	t.Cleanup(func() { // processes of the browser write to it for a moment after the first one's end
		require.Eventually(t, func() bool { return os.RemoveAll(profile) == nil }, time.Minute, 10*time.Millisecond)
	})
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile}, args...)
	return exec.CommandContext(t.Context(), "chromium", args...)
}

// TestABrowserRunsTheScriptOfThePage: the page's policy lets its script run, and the script renews
// the page.
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
	dom, err := chromium(t, "--virtual-time-budget=5000", "--dump-dom", server.URL).Output()
	require.NoError(t, err)
	assert.Contains(t, string(dom), `<button id="renew">Stop</button>`, "the script has shown the button")
	assert.NotContains(t, string(dom), `id="old"`)
	assert.Contains(t, string(dom), "(dial 2)")
	assert.GreaterOrEqual(t, visits.Load(), int64(2), "the page was renewed")
}

// A tab stays open for days, and the program may end meanwhile, stop, or be replaced.
func TestABrowserSaysThatAPageIsOldAndNotThatAllIsWell(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	var way atomic.Value
	way.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch answer := httptest.NewRecorder(); way.Load() {
		case "closed":
			panic(http.ErrAbortHandler)
		case "stopped":
			<-q.Context().Done()
		case "another":
			_, _ = io.WriteString(w, "<main>Nothing is wrong</main>")
		case "later":
			r.h.ServeHTTP(answer, q)
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, strings.Replace(strings.Replace(answer.Body.String(), "<style>", "<style>/* */", 1), "</h1>", "</h1><p>a later version</p>", 1))
		default:
			r.h.ServeHTTP(w, q)
		}
	}))
	defer server.Close()
	b := newBrowser(t)
	b.open(server.URL)
	for _, now := range []string{"closed", "another", "stopped"} {
		b.shows("Nothing is wrong")
		way.Store(now)
		b.shows(", and was not renewed: ")
		b.until(`!document.body.innerText.includes("Nothing is wrong") && document.title.startsWith("not renewed")`)
		way.Store("")
	}
	b.shows("Nothing is wrong")
	b.until(`!document.getElementById("old") && !document.title.includes("not renewed")`)
	way.Store("later")
	b.shows("a later version")
}

// browser is a browser with one page, which the test has do what a visitor does.
type browser struct {
	t       *testing.T
	in      io.Writer     // its commands, each ends with a zero
	out     *bufio.Reader // their results, likewise, among what else it tells
	id      int           // of the last command
	session string        // of the page
}

// newBrowser starts a browser, which ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	itsIn, in, err := os.Pipe()
	require.NoError(t, err)
	out, itsOut, err := os.Pipe()
	require.NoError(t, err)
	cmd := chromium(t, "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{itsIn, itsOut}
	require.NoError(t, cmd.Start())
	require.NoError(t, itsIn.Close())
	require.NoError(t, itsOut.Close())
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = b.do("Browser.close", map[string]any{}, &struct{}{})
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		_, _ = in.Close(), out.Close()
	})
	var page struct{ TargetID, SessionID string }
	require.NoError(t, b.do("Target.createTarget", map[string]any{"url": "about:blank"}, &page))
	require.NoError(t, b.do("Target.attachToTarget", map[string]any{"targetId": page.TargetID, "flatten": true}, &page))
	b.session = page.SessionID
	return b
}

// do has the browser do something, and puts the result where to points.
func (b *browser) do(method string, params map[string]any, to any) error {
	b.id++
	command := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	if err != nil {
		return err
	}
	if _, err = b.in.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		text, err := b.out.ReadBytes(0)
		if err != nil {
			return err
		}
		var said struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch err = json.Unmarshal(text[:len(text)-1], &said); {
		case err != nil:
			return err
		case said.ID != b.id: // the browser tells of something else
		case said.Error != nil:
			return fmt.Errorf("%s: %s", method, said.Error.Message)
		default:
			return json.Unmarshal(said.Result, to)
		}
	}
}

// is evaluates an expression in the page. A page that is being left has none.
func (b *browser) is(expression string) bool {
	var said struct{ Result struct{ Value any } }
	err := b.do("Runtime.evaluate", map[string]any{"expression": expression}, &said)
	return err == nil && said.Result.Value == true
}

// until waits until the page is so.
func (b *browser) until(expression string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.is(expression) }, time.Minute, 20*time.Millisecond, expression)
}

// shows waits until the page is whole and has the text.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.readyState == "complete" && document.body.innerText.includes(%q)`, text))
}

func (b *browser) open(url string) {
	b.t.Helper()
	require.NoError(b.t, b.do("Page.navigate", map[string]any{"url": url}, &struct{}{}))
}

// press presses a button of the page's part that is renewed.
func (b *browser) press(button string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(b => { b?.click(); return !!b; })([...document.querySelectorAll("main button")].find(b => b.textContent == %q))`, button))
}

func TestABrowserPressesTheButtonsOfMeasurements(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	server := httptest.NewServer(r.h.LetMeasure())
	defer server.Close()
	b := newBrowser(t)
	b.open(server.URL + "?show=latencies")
	b.shows("not measured now. Measure for")
	b.press("1 min")
	b.shows("are measured, for")
	assert.True(t, r.ia.MeasuresLatency())
	b.until(`location.search == "?show=latencies"`)
	b.until(`document.querySelector("main").classList.add("old") ?? true`)
	b.until(`!document.querySelector("main").classList.contains("old")`) // it was renewed
	b.press("Stop")
	b.shows("not measured now. Measure for")
	assert.False(t, r.ia.MeasuresLatency())
}

func TestABrowserPressesTheButtonsOfATrace(t *testing.T) {
	h, c, _, _ := traced(t)
	server := httptest.NewServer(h)
	defer server.Close()
	b := newBrowser(t)
	b.open(server.URL + "?of=" + url.QueryEscape(c.String()))
	b.press("Trace it for 30 seconds")
	b.shows("A trace is under way")
	require.NoError(t, c.SendBytes([]byte("a message that is traced")))
	b.press("Stop the trace")
	b.shows("A trace of")
	b.shows("Trace it for 30 seconds")
	trace, _ := told(t, h, c.String())
	require.True(t, trace.Over)
	text, err := os.ReadFile(trace.File)
	require.NoError(t, err)
	assert.Contains(t, string(text), "a message that is traced")
}
