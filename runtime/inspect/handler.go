package inspect

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/inspect/internal/process"
)

const (
	leastAge = time.Second // of a snapshot that another one replaces
	renders  = 4           // pages that are rendered at the same time
	longest  = 4096        // bytes of a request's query
)

// Handler is an http.Handler and an expvar.Var. Its methods may be called from any
// goroutine.
type Handler struct {
	// Immutable.
	adapters    []*adapter
	turns       chan struct{}
	letsMeasure bool
	same        http.CrossOriginProtection
	hosts       []string // that the program allows
	traces      traces
}

// adapter is an adapter with what was last seen of it.
type adapter struct {
	ia    *dat.IA
	label string

	mu        sync.Mutex // held while a snapshot is taken, so that requests share it
	now, last *seen      // now and some time before; nil before the first
	meter     meter
}

// seen is a snapshot with what is wrong in it. It is immutable.
type seen struct {
	dat.Snapshot
	Troubles []trouble
	Process  process.Info
	Owners   []owner
	Sums     []sum
	Over     time.Duration // from the look before, of which rates are; 0 at a first look
	Times    []timed
	First    bool // nothing is known of the time before it
	recent   map[recentKey][]growth
	lows     lows // of the process's memory, and of its goroutines
}

// New makes a handler that shows those adapters, which may be closed before it.
func New(ias ...*dat.IA) *Handler {
	h := &Handler{turns: make(chan struct{}, renders)}
	labels := Labels(ias...)
	for i, ia := range ias {
		h.adapters = append(h.adapters, &adapter{ia: ia, label: labels[i]})
	}
	return h
}

// Labels has a label for each adapter, no two alike: the name that it was opened by, and NAME#2
// for the second adapter of a name. The page, expvar and package prometheus call adapters so.
func Labels(ias ...*dat.IA) []string {
	var labels []string
	for _, ia := range ias {
		label := ia.Name()
		for n := 2; slices.Contains(labels, label); n++ {
			label = fmt.Sprintf("%s#%d", ia.Name(), n)
		}
		labels = append(labels, label)
	}
	return labels
}

// look returns a snapshot that is younger than leastAge, or takes one.
func (a *adapter) look() (*seen, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != nil && time.Since(a.now.At) < leastAge {
		return a.now, nil
	}
	s, err := a.ia.Snapshot()
	if errors.Is(err, net.ErrClosed) {
		return nil, errClosed
	} else if err != nil {
		return nil, err
	}
	a.last, a.now = a.now, &seen{Snapshot: s, Process: process.Now(), Times: timesOf(&s)}
	a.now.First = a.last == nil || s.At.Sub(a.last.At) > unseen
	a.now.Owners, a.now.Sums = ownersOf(&s), sumsOf(&s)
	a.now.rates(a.last)
	a.now.Troubles = troubles(a.now, a.last)
	return a.now, nil
}

// errClosed is what the page of a closed adapter says.
var errClosed = errors.New("this program has closed the adapter, so nothing of it can be shown")

// errNoHandler is the error of a handler that is nil or zero.
var errNoHandler = fmt.Errorf("inspect: a nil or zero Handler: inspect.New makes one: %w", hw.ErrInvalidHandle)

// isMade reports whether New has made the handler.
func (h *Handler) isMade() bool { return h != nil && h.turns != nil }

// ServeHTTP answers a request for the page, wherever the handler is mounted.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.isMade() {
		http.Error(w, errNoHandler.Error(), http.StatusInternalServerError)
		return
	}
	posts := r.Method == http.MethodPost && (h.letsMeasure || h.traces.dir != "")
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !posts {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page only shows", http.StatusMethodNotAllowed)
		return
	}
	if why := h.refusal(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	q, err := parseQuery(r.URL.RawQuery, len(h.adapters))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if posts {
		h.post(w, r, q)
		return
	}
	select {
	case h.turns <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	var body bytes.Buffer
	kind, err := h.render(&body, q)
	<-h.turns // a visitor that reads slowly has no turn
	if err != nil {
		code := http.StatusServiceUnavailable
		if errors.Is(err, errNotHere) {
			code = http.StatusNotFound
		}
		http.Error(w, err.Error(), code)
		return
	}
	head := w.Header()
	head.Set("Content-Type", kind)
	head.Set("Content-Security-Policy", policy)
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(body.Bytes())
}

func (h *Handler) render(to *bytes.Buffer, q query) (kind string, err error) {
	s, err := h.adapters[q.adapter].look()
	if err != nil {
		return "", err
	}
	p, err := h.page(s, q)
	if err != nil {
		return "", err
	}
	if q.json {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return "application/json", e.Encode(p)
	}
	return "text/html; charset=utf-8", pages.Execute(to, p)
}

// String is a summary of all adapters in JSON, as expvar.Var wants it. An adapter that is
// closed has its error.
func (h *Handler) String() string {
	type summary struct {
		Error                                    string `json:",omitempty"`
		Conns, Endpoints, Dispatchers, Listeners int
		Counters                                 dat.Counters
		Memory                                   mem.Stats
		Ends                                     []ep.EndCount
		Troubles                                 []trouble
	}
	all := make(map[string]summary)
	if !h.isMade() {
		return "{}"
	}
	for _, a := range h.adapters {
		s, err := a.look()
		if err != nil {
			all[a.label] = summary{Error: err.Error()}
			continue
		}
		all[a.label] = summary{
			Conns: len(s.Conns), Endpoints: len(s.Endpoints), Dispatchers: len(s.Dispatchers), Listeners: len(s.Listeners),
			Counters: s.Counters, Memory: s.Memory, Ends: s.Ends, Troubles: s.Troubles,
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Sprintf("%q", err)
	}
	return string(text)
}

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"css":    func() template.CSS { return template.CSS(pageCSS) },
	"script": func() template.JS { return template.JS(pageJS) },
	"octets": octets, "draw": draw, "many": many[int], "number": func(n any) string { return grouped(fmt.Sprint(n)) },
}).Parse(pageHTML))

// policy lets the page use what is in it, and renew itself.
var policy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	hashOf(pageCSS), hashOf(pageJS))

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
