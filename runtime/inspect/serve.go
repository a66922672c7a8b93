package inspect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// The bounds of Serve's visitors.
const (
	patience      = 10 * time.Second // that a visitor may take to ask, or to read a piece of the answer
	piece         = 4 << 10          // bytes
	longestHeader = 16 << 10         // bytes
	mostVisitors  = 64               // connections at a time; the program needs descriptors, too
)

// errNoPage says that visitors of no page may trace.
var errNoPage = errors.New("inspect: a directory for traces, and no address of the page on which they begin")

// Serve serves the page of adapters at address, "host:port", until ctx ends: what a program does
// with options --inspect and --traces. It returns the page's URL. With an empty address it does
// nothing. The page names peers, and its visitors may have requests measured (see
// [Handler.LetMeasure]), so the address is one that only operators reach, such as 127.0.0.1:6060.
// Unless traces is empty, visitors may also trace connections into that directory (see
// [Handler.AllowTraces]). An address without a host is of loopback: ":6060" is 127.0.0.1:6060, and
// 0.0.0.0:6060 is for all. At most 64 connections are let in at a time, and a visitor who asks, reads or
// leaves too slowly is sent away, so that visitors take a bounded number of descriptors. An address that
// another page has is an error that says whose. Without an adapter, or with a nil one, the page is refused, and so
// it is with a nil context.
func Serve(ctx context.Context, address, traces string, ias ...*dat.IA) (url string, err error) {
	h := New(ias...).LetMeasure()
	switch {
	case address == "" && traces != "":
		return "", errNoPage
	case address == "":
		return "", nil
	case ctx == nil:
		return "", hw.Errorf("inspect.Serve", hw.InvalidParameter, hw.Arg1, "a nil context; context.Background() is one that never ends")
	case len(ias) == 0 || slices.Contains(ias, nil):
		return "", hw.Errorf("inspect.Serve", hw.InvalidHandle, hw.HandleIA, "a page of no adapter, or of a nil one: runtime.Open opens one")
	case traces != "":
		if err := h.AllowTraces(traces); err != nil {
			return "", err
		}
	}
	address = onLoopback(address)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", taken(ctx, address, err)
	}
	s := server(h)
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go run(s, newEntrance(l))
	return "http://" + l.Addr().String() + "/", nil
}

func server(h http.Handler) *http.Server {
	s := &http.Server{Handler: steady{h}, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: longestHeader}
	s.SetKeepAlivesEnabled(false) // a visitor keeps no place, and no descriptor, behind an answer
	return s
}

// steady has a handler's visitors read its answer piece by piece: whoever reads slowly, but goes on, gets all of it.
type steady struct{ http.Handler }

// ServeHTTP implements http.Handler.
func (s steady) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Handler.ServeHTTP(pieces{w, http.NewResponseController(w)}, r)
}

type pieces struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Write implements io.Writer.
func (p pieces) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		if err = p.control.SetWriteDeadline(time.Now().Add(patience)); err == nil {
			var some int
			some, err = p.ResponseWriter.Write(b[n:min(n+piece, len(b))])
			n += some
		}
	}
	return n, err
}

// run is the goroutine that serves the page until the server is closed.
func run(s *http.Server, e *entrance) {
	_ = s.Serve(e)
	e.end()
}
