package inspect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	dat "godat/runtime"
)

// The bounds of Serve's visitors.
const (
	patience      = 10 * time.Second // that a visitor may take to ask, or to read the answer
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
// [Handler.AllowTraces]). At most 64 connections are let in at a time, and a visitor who asks, reads or
// leaves too slowly is sent away, so that visitors take a bounded number of descriptors.
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
	s := server(h)
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go run(s, l)
	return "http://" + l.Addr().String() + "/", nil
}

func server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: longestHeader}
}

// run is the goroutine that serves the page until the server is closed.
func run(s *http.Server, l net.Listener) {
	_ = s.Serve(&entrance{Listener: l, places: make(chan struct{}, mostVisitors)})
}

// entrance lets a bounded number of visitors in at a time. Others wait in the system's backlog.
type entrance struct {
	net.Listener
	places chan struct{}
}

// Accept waits for a place, and then for a visitor. A server that closes its connections gives
// places back, so it waits for none.
func (e *entrance) Accept() (net.Conn, error) {
	e.places <- struct{}{}
	c, err := e.Listener.Accept()
	if err != nil {
		<-e.places
		return nil, err
	}
	return &visitor{Conn: c, leave: sync.OnceFunc(func() { <-e.places })}, nil
}

type visitor struct {
	net.Conn
	leave func()
}

// Close gives the place back.
func (v *visitor) Close() error {
	defer v.leave()
	return v.Conn.Close()
}
