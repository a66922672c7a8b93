package inspect

import (
	"cmp"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

var address = regexp.MustCompile(`<(a href|form method="post" action|button formaction)="([^"]*)"(?: rel="(\w+)")?`)

// linked is a link of the page.
type linked struct {
	tag, to, rel string
}

// links returns the links of a page, each of which begins with a question mark: it stays at the
// page, wherever that is mounted.
func (r *rig) links(from string) (all []linked) {
	r.t.Helper()
	w := r.get(from)
	require.Equal(r.t, http.StatusOK, w.Code, "%s: %s", from, w.Body)
	for _, m := range address.FindAllStringSubmatch(w.Body.String(), -1) {
		to := html.UnescapeString(m[2])
		if assert.True(r.t, strings.HasPrefix(to, "?"), "a link of %s is %q", from, to) {
			all = append(all, linked{m[1], to, m[3]})
		}
	}
	return all
}

// settings parses a link, with the values that are usual.
func settings(t *testing.T, link string) url.Values {
	t.Helper()
	q, err := url.ParseQuery(strings.TrimPrefix(link, "?"))
	require.NoError(t, err, link)
	for name, usual := range map[string]string{"adapter": "0", "show": "connections", "page": "1"} {
		if q.Get(name) == "" {
			q.Set(name, usual)
		}
	}
	return q
}

// differ returns the names of the settings that a link changes, in a fixed order.
func differ(from, to url.Values) string {
	var names []string
	for _, name := range []string{"adapter", "show", "of", "filter", "sort", "page", "format", "measure", "trace"} {
		if from.Get(name) != to.Get(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// follow follows each link of a page. A link keeps the settings that are not its own, but those
// that lead to another list or adapter, which begin anew there.
func (r *rig) follow(from string, seen map[string]int) (next []string) {
	r.t.Helper()
	here := settings(r.t, from)
	for _, l := range r.links(from) {
		there := settings(r.t, l.to)
		changed := differ(here, there)
		seen[changed]++
		anew := there.Get("filter")+there.Get("sort")+there.Get("of") == "" && there.Get("page") == "1"
		told := there.Get("sort") == "" && (there.Get("of") != "" || there.Get("filter") != "")
		switch {
		case l.tag != "a href":
			assert.Contains(r.t, []string{"measure", "trace"}, changed, "%s leads to %s", from, l.to)
			continue // a POST
		case l.rel != "":
			assert.Equal(r.t, "page", changed, "%s leads to %s", from, l.to)
		case anew || told: // to a list, an adapter or what a trouble is of
			if !anew && there.Get("adapter") != here.Get("adapter") { // what is wrong with another adapter
				name := cmp.Or(there.Get("of"), there.Get("filter"))
				assert.Contains(r.t, html.UnescapeString(r.get(l.to).Body.String()), "<td>"+name, "%s leads to %s", from, l.to)
			}
		default:
			assert.Contains(r.t, []string{"", "of", "sort", "sort page", "page", "format"}, changed, "%s leads to %s", from, l.to)
		}
		w := r.get(l.to)
		assert.Equal(r.t, http.StatusOK, w.Code, "%s leads to %s: %s", from, l.to, w.Body)
		if there.Get("format") == "" {
			next = append(next, l.to)
		}
	}
	return next
}

// crawl follows the links of a page, and those of the pages behind them.
func (r *rig) crawl(from string, depth int, done map[string]bool, seen map[string]int) {
	r.t.Helper()
	if done[from] || r.t.Failed() {
		return
	}
	done[from] = true
	next := r.follow(from, seen)
	if depth > 1 {
		for _, to := range next {
			r.crawl(to, depth-1, done, seen)
		}
	}
}

// Of a busy adapter with a trouble, and of an idle one, each link leads to a page that is there,
// with the settings that the visitor has chosen.
func TestEachLinkLeadsToAPageAndKeepsWhatTheVisitorChose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		idle, err := dat.Open(t.Context(), "loop:idle")
		require.NoError(t, err)
		ln, err := busy.Listen(t.Context(), "", dat.ConnConfig{Depth: 1, Message: 16, Conns: 220})
		require.NoError(t, err)
		r := &rig{t, busy, ln, New(busy, idle).LetMeasure()}
		var client *dat.Conn
		for range 105 {
			client, _ = r.join()
		}
		require.NoError(t, client.SendBytes([]byte("x"))) // which nobody takes
		r.get("?format=json")
		time.Sleep(late + time.Millisecond)
		synctest.Wait()
		require.NotEmpty(t, r.ask("?format=json").Troubles)

		done, seen := map[string]bool{}, map[string]int{}
		of := url.QueryEscape(client.String())
		for _, from := range []string{
			"", "?show=latencies", "?adapter=1", "?adapter=1&show=last+ends", "?filter=dial&sort=-depth", "?filter=loop&page=2&sort=name",
			"?of=" + of, "?filter=dial&of=" + of + "&page=2&sort=name",
			"?filter=" + url.QueryEscape(strings.Repeat("ü", mostFilter/2)) + "&sort=name",
		} {
			r.crawl(from, 1, done, seen)
		}
		r.crawl("?filter=dial+1&sort=name", 2, done, seen)
		for _, change := range []string{"of", "sort", "page", "format", "measure", "show", "adapter"} {
			assert.NotZero(t, seen[change], "no link changes %s alone", change)
		}
		for _, name := range []string{"filter", "sort"} {
			assert.Equal(t, http.StatusBadRequest, r.get("?"+name+"="+strings.Repeat("x", mostFilter+1)).Code)
		}
		require.NoError(t, idle.Close())
		require.NoError(t, busy.Close())
	})
}
