package inspect

import (
	"errors"
	"os"
	"sync"
	"time"

	"godat/ep"
	dat "godat/runtime"
)

// The bounds of a visitor's trace.
const (
	longestTrace = 30 * time.Second
	largestTrace = 64 << 20 // bytes
)

var errTraceFull = errors.New("the file has 64 MiB, the most that a visitor's trace may have")

var errTraced = errors.New("another trace is under way; only one is at a time")

// traces are what the visitors of a handler trace.
type traces struct {
	dir string // empty: nothing

	mu   sync.Mutex
	last *trace // nil before the first
}

// AllowTraces lets visitors trace one connection or endpoint at a time, as
// [godat/ep.Endpoint.Trace] does, into a file in dir, which AllowTraces makes. A trace ends
// after 30 seconds, at 64 MiB, or when a visitor stops it. Visitors do not get the file, which has
// payloads and is for the process's user alone; who may read the page may fill the disk of dir.
// Without AllowTraces the handler takes GET and HEAD alone; with it also POST, from the page's own
// origin. The program calls it before the handler has its first request. Where nothing can be
// traced, as on loop, the page says why beside a button without effect.
func (h *Handler) AllowTraces(dir string) error {
	if !h.isMade() {
		return errNoHandler
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	h.traces.dir = dir
	return nil
}

// trace is the file of a trace. Its connection writes and closes it.
type trace struct {
	// Immutable.
	adapter int
	of      string
	began   time.Time
	stop    func() error

	mu     sync.Mutex
	file   *os.File
	octets uint64
	over   bool
	err    error // that ended it
}

// Write adds packets to the file.
func (t *trace) Write(b []byte) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.octets+uint64(len(b)) > largestTrace {
		err = errTraceFull
	} else {
		n, err = t.file.Write(b)
	}
	t.octets += uint64(n)
	t.err = err
	return n, err
}

// Close closes the file.
func (t *trace) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return errors.Join(t.err, t.file.Close())
}

func (t *trace) end() { _ = t.stop() }

type seenTrace struct {
	File  string
	Began time.Time
	Bytes uint64
	Over  bool
	Cause string `json:",omitempty"` // why it ended early
}

func (t *trace) seen() *seenTrace {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &seenTrace{File: t.file.Name(), Began: t.began, Bytes: t.octets, Over: t.over}
	if t.err != nil {
		s.Cause = t.err.Error()
	}
	return s
}

// of returns the last trace, if it is of what the query is for.
func (t *traces) of(q query) *trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.last; l != nil && l.adapter == q.adapter && l.of == q.of {
		return l
	}
	return nil
}

// refusal is why a visitor can't begin a trace of an endpoint; empty if he can.
func (t *traces) refusal(s *seen, e *ep.EndpointSnapshot) string {
	switch {
	case !e.Traceable:
		return s.Provider + " can't trace connections."
	case e.State != connected:
		return "It is not connected."
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy() {
		return "Another trace is under way, of " + t.last.of + "."
	}
	return ""
}

// busy reports whether a trace is under way. The caller holds the mutex.
func (t *traces) busy() bool { return t.last != nil && !t.last.seen().Over }

// begin begins a trace of an endpoint.
func (t *traces) begin(e *ep.Endpoint, q query) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy() {
		return errTraced
	}
	file, err := os.CreateTemp(t.dir, time.Now().Format("20060102-150405-*.pcapng"))
	if err != nil {
		return err
	}
	now := &trace{adapter: q.adapter, of: q.of, began: time.Now(), file: file}
	if now.stop, err = e.Trace(now); err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	t.last = now
	time.AfterFunc(longestTrace, now.end)
	return nil
}

// endpoint is the endpoint whose story it is, or that of the connection; nil if it has ended.
func (s *story) endpoint() *ep.EndpointSnapshot {
	switch is := s.Is.(type) {
	case *dat.ConnSnapshot:
		return &is.Endpoint
	case *ep.EndpointSnapshot:
		return is
	}
	return nil
}
