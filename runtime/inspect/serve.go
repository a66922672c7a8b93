package inspect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	dat "godat/runtime"
)

// patience is how long a visitor of Serve may take to ask, or to read the answer.
const patience = 10 * time.Second

// errNoPage says that visitors of no page may trace.
var errNoPage = errors.New("inspect: a directory for traces, and no address of the page on which they begin")

// Serve serves the page of adapters at address, "host:port", until ctx ends: what a program does
// with options --inspect and --traces. It returns the page's URL. With an empty address it does
// nothing. The page names peers, and its visitors may have requests measured (see
// [Handler.LetMeasure]), so the address is one that only operators reach, such as 127.0.0.1:6060.
// Unless traces is empty, visitors may also trace connections into that directory (see
// [Handler.AllowTraces]).
func Serve(ctx context.Context, address, traces string, ias ...*dat.IA) (url string, err error) {
	h := New(ias...).LetMeasure()
	switch {
	case address == "" && traces != "":
		return "", errNoPage
	case address == "":
		return "", nil
	case traces != "":
		if err := h.AllowTraces(traces); err != nil {
			return "", err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 1 << 14}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go run(s, l)
	return "http://" + l.Addr().String() + "/", nil
}

// run is the goroutine that serves the page until the server is closed.
func run(s *http.Server, l net.Listener) { _ = s.Serve(l) }
