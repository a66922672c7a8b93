package inspect

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// rig is an adapter with a listener, connections to it, and the handler that shows them.
type rig struct {
	t  *testing.T
	ia *dat.IA
	ln *dat.Listener
	h  *Handler
}

// newRig makes pairs of connections on loop, the ends of each on one listener.
func newRig(t *testing.T, pairs int, cfg dat.ConnConfig) *rig {
	t.Helper()
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	cfg.Conns = 2*pairs + 3
	ln, err := ia.Listen(t.Context(), "", cfg)
	require.NoError(t, err)
	r := &rig{t, ia, ln, New(ia)}
	for range pairs {
		r.join()
	}
	return r
}

// join makes a pair of connections.
func (r *rig) join() (client, server *dat.Conn) {
	r.t.Helper()
	client, err := r.ln.Dial(r.ln.Addr(), nil)
	require.NoError(r.t, err)
	server, err = r.ln.Accept(ep.RequestOf(<-r.ln.Requests()), nil)
	require.NoError(r.t, err)
	for range 2 {
		require.Equal(r.t, event.Established, (<-r.ln.Events()).Number)
	}
	return client, server
}

// get asks for the page with a query.
func (r *rig) get(query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/godat/"+query, nil))
	return w
}

// said is the JSON of the page.
type said struct {
	Adapter  string
	Troubles []trouble
	Table    struct {
		Items                        []dat.ConnSnapshot
		Total, Matching, Page, Pages int
	}
	Story struct {
		Name  string
		Lines []ep.StoryLine
	}
}

// ask asks for the page as JSON.
func (r *rig) ask(query string) (s said) {
	r.t.Helper()
	r.askFor(query, &s)
	return s
}

// askFor is ask for what is in a JSON that a test knows.
func (r *rig) askFor(query string, to any) {
	r.t.Helper()
	w := r.get(query)
	require.Equal(r.t, http.StatusOK, w.Code, w.Body)
	require.Equal(r.t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(r.t, json.Unmarshal(w.Body.Bytes(), to))
}

func TestThePageIsOneDocumentThatFetchesNothing(t *testing.T) {
	w := newRig(t, 2, dat.ConnConfig{}).get("")
	require.Equal(t, http.StatusOK, w.Code)
	body := w.Body.String()
	for _, part := range []string{"This is a first look", "connections 4", "listeners 1", "CONNECTED", "(dial 1)"} {
		assert.Contains(t, body, part)
	}
	for _, part := range []string{"http:", "https:", "src=", "@import", "url(", "<link"} {
		assert.NotContains(t, body, part)
	}
	policy := w.Header().Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	for _, tag := range []string{"style", "script"} {
		_, inside, _ := strings.Cut(body, "<"+tag+">")
		inside, _, _ = strings.Cut(inside, "</"+tag+">")
		assert.Contains(t, policy, tag+"-src '"+hashOf(inside)+"'", "the browser takes the %s that is in the page", tag)
	}
	assert.Equal(t, "no-store", w.Header().Get("Cache-Control"))
}

func TestAVisitorOnlyLooks(t *testing.T) {
	r := newRig(t, 0, dat.ConnConfig{})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, "BREW"} {
		w := httptest.NewRecorder()
		r.h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
	}
	for query, code := range map[string]int{
		"?filter=" + strings.Repeat("x", longest): http.StatusBadRequest,
		"?page=x": http.StatusBadRequest, "?adapter=1": http.StatusBadRequest, "?adapter=-1": http.StatusBadRequest, "?a=%zz": http.StatusBadRequest,
		"?show=passwords": http.StatusNotFound, "?of=nobody": http.StatusNotFound,
		"?page=-5": http.StatusOK, "?page=999999999": http.StatusOK, "?sort=nothing": http.StatusOK, "?sort=-": http.StatusOK,
	} {
		assert.Equal(t, code, r.get(query).Code, query)
	}
	for _, show := range []string{"connections", "endpoints", "dispatchers", "listeners", "shared receives", "last ends"} {
		w := r.get("?" + url.Values{"show": {show}}.Encode())
		assert.Equal(t, http.StatusOK, w.Code, show)
		assert.Contains(t, w.Body.String(), "</html>", "all of the page is there")
	}
}

func TestWhatAVisitorSaysIsNoMarkup(t *testing.T) {
	body := newRig(t, 0, dat.ConnConfig{}).get("?filter=%22%3E%3Cscript%3Ex%3C/script%3E&sort=%22%3E%3Cb%3E").Body.String()
	assert.NotContains(t, body, "<script>x")
	assert.NotContains(t, body, `"><b>`)
}

func TestEachConnectionIsOnOnePage(t *testing.T) {
	r := newRig(t, 110, dat.ConnConfig{Depth: 1, Message: 1})
	seen := map[uint64]bool{}
	for page := 1; page <= 3; page++ {
		s := r.ask(fmt.Sprintf("?format=json&sort=name&page=%d", page))
		assert.Equal(t, [4]int{220, 220, page, 3}, [4]int{s.Table.Total, s.Table.Matching, s.Table.Page, s.Table.Pages})
		assert.LessOrEqual(t, len(s.Table.Items), rowsOfPage)
		last := ""
		for _, c := range s.Table.Items {
			assert.False(t, seen[c.ID])
			assert.LessOrEqual(t, natural(last, c.Name), 0, "%s, %s", last, c.Name)
			seen[c.ID], last = true, c.Name
		}
	}
	assert.Len(t, seen, 220)
	s := r.ask("?format=json&filter=DIAL+7)")
	require.Len(t, s.Table.Items, 1)
	assert.Contains(t, s.Table.Items[0].Name, "(dial 7)")
}

func TestATableSortsByNumbersEitherWay(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	client, _ := r.join()
	require.NoError(t, client.SendBytes([]byte("hello")))
	require.Equal(t, hw.OpRecv, (<-r.ln.Events()).Op)
	assert.Equal(t, client.ID(), r.ask("?format=json&sort=-requested").Table.Items[0].ID)
	assert.Equal(t, client.ID(), r.ask("?format=json&sort=requested").Table.Items[3].ID)
	assert.Contains(t, r.get("?sort=-requested").Body.String(), `aria-sort="descending"`)
}

func TestAConnectionHasItsStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, dat.ConnConfig{})
		client, server := r.join()
		of := "?of=" + url.QueryEscape(client.String())
		s := r.ask(of + "&format=json")
		assert.Equal(t, client.String(), s.Story.Name)
		assert.Len(t, s.Story.Lines, 2)
		body := r.get(of).Body.String()
		assert.Contains(t, body, "connected")
		assert.Contains(t, body, "longest message")

		require.NoError(t, client.Close())
		require.True(t, (<-r.ln.Events()).Ended())
		require.NoError(t, server.Close())
		time.Sleep(leastAge)
		s = r.ask(of + "&format=json")
		assert.Greater(t, len(s.Story.Lines), 2, "the story outlives the connection")
		assert.Contains(t, r.get(of).Body.String(), "DISCONNECTED")
		require.NoError(t, r.ia.Close())
	})
}

func TestAVisitorSeesForHowLongNothingCameOrWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, dat.ConnConfig{})
		client, server := r.join()
		r.get("")
		time.Sleep(time.Minute)
		require.NoError(t, client.SendBytes([]byte("hello")))
		server.Release(server.Message(<-r.ln.Events()))
		r.get("") // which sees that it came
		time.Sleep(90 * time.Second)
		assert.Contains(t, r.get("").Body.String(), `<td class="n">1 min 30 s</td>`)
		body := r.get("?of=" + url.QueryEscape(client.String())).Body.String()
		assert.Contains(t, body, "1 posted so far, 0 failed, 0 flushed; none has succeeded for 1 min 30 s</dd>")
		assert.Contains(t, body, "none has succeeded for 2 min 30 s; the oldest", "of the receives")
		require.NoError(t, r.ia.Close())
	})
}

func TestRequestsShareASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, dat.ConnConfig{})
		a := r.h.adapters[0]
		one, err := a.look()
		require.NoError(t, err)
		time.Sleep(leastAge - time.Nanosecond)
		two, err := a.look()
		require.NoError(t, err)
		assert.Same(t, one, two)
		time.Sleep(time.Nanosecond)
		three, err := a.look()
		require.NoError(t, err)
		assert.NotSame(t, one, three)
		assert.Same(t, one, a.last)
		require.NoError(t, r.ia.Close())
	})
}

// stuck is a visitor that takes no octets.
type stuck struct {
	http.ResponseWriter
	writes  chan<- struct{}
	release <-chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.release
	return len(b), nil
}

func TestVisitorsThatReadSlowlyHoldNobodyUp(t *testing.T) {
	r := newRig(t, 1, dat.ConnConfig{})
	const visitors = 3 * renders
	writes, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{}, visitors)
	for range visitors {
		go func() {
			r.h.ServeHTTP(&stuck{httptest.NewRecorder(), writes, release}, httptest.NewRequest(http.MethodGet, "/", nil))
			done <- struct{}{}
		}()
	}
	for range visitors {
		<-writes
	}
	assert.Equal(t, http.StatusOK, r.get("").Code)
	close(release)
	for range visitors {
		<-done
	}
}

func TestTenThousandRequestsAtATimeTakeOneSnapshot(t *testing.T) {
	staged(t, dat.ConnConfig{}, func(r *rig) {
		taken := 0
		_, err := r.ia.Report("looks", func() []any { taken++; return nil })
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 10000 {
			all.Go(func() {
				assert.Equal(t, http.StatusOK, r.get("?show=listeners&format=json&filter="+strings.Repeat("x", 200)).Code)
			})
		}
		all.Wait()
		assert.Equal(t, 1, taken)
	})
}

func TestThePageOfAnAdapterThatClosesIsAnError(t *testing.T) {
	r := newRig(t, 3, dat.ConnConfig{})
	const visitors = 8
	codes := make(chan int)
	for range visitors {
		go func() {
			code := http.StatusOK
			for code == http.StatusOK {
				r.h.adapters[0].forget()
				code = r.get("").Code
			}
			codes <- code
		}()
	}
	require.NoError(t, r.ia.Close())
	for range visitors {
		assert.Equal(t, http.StatusServiceUnavailable, <-codes)
	}
	assert.Contains(t, r.h.String(), `"Error":`)
}

// forget makes the next request take a snapshot.
func (a *adapter) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = nil
}

func TestTheSummaryIsJSON(t *testing.T) {
	r := newRig(t, 2, dat.ConnConfig{})
	var all map[string]struct{ Conns, Listeners int }
	require.NoError(t, json.Unmarshal([]byte(r.h.String()), &all))
	assert.Equal(t, 4, all["loop"].Conns)
	assert.Equal(t, 1, all["loop"].Listeners)
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	assert.Equal(t, "999", number(999))
	assert.Equal(t, "1\u202f000", number(1000))
	assert.Equal(t, "12\u202f345\u202f678", number(uint64(12345678)))
	for n, text := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1 << 20: "1 MiB", 1000 << 10: "0.977 MiB", 3 << 40: "3 TiB"} {
		assert.Equal(t, text, octets(n))
	}
	for d, text := range map[time.Duration]string{
		999: "999 ns", 5 * time.Microsecond: "5 µs", 1500 * time.Millisecond: "1.5 s", 61 * time.Second: "1 min 01 s", 90 * time.Minute: "1 h 30 min", 72 * time.Hour: "3 days",
	} {
		assert.Equal(t, text, ago(d))
	}
}
