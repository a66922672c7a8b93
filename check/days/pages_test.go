package days

import (
	"flag"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var pages = flag.String("pages", "", "judge nothing, and write the pages of each day that is run to this directory")

const (
	readers = 40 * time.Second // into a day a reader has its pages
	leads   = `<li><a href="([^"]*)">`
)

// get is a page as a browser has it.
func get(page http.Handler, query string) string {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/"+query, nil))
	return w.Body.String()
}

// write stages a day, and writes the page of the program and of its peer, each with that to which the first line leads.
func (d *day) write(t *testing.T) {
	s := newStage(t)
	d.stage(s)
	begun, lasts := time.Now(), max(d.within, readers)
	for time.Since(begun) < lasts {
		get(s.page, "")
		get(s.there, "")
		time.Sleep(pause)
	}
	all := make(map[string]string)
	for name, page := range map[string]http.Handler{"page": s.page, "peer": s.there} {
		text := get(page, "")
		all[name] = text
		if m := regexp.MustCompile(leads).FindStringSubmatch(text); m != nil {
			all[name+"-first"] = get(page, html.UnescapeString(m[1]))
		}
	}
	s.end() // which may be why files can be written
	dir := filepath.Join(*pages, filepath.Base(t.Name()))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, text := range all {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".html"), []byte(text), 0o600))
	}
}
