package inspect

import (
	"context"
	"net"
	"net/http"
	"time"

	dat "godat/runtime"
)

// patience is how long a visitor of Serve may take to ask, or to read the answer.
const patience = 10 * time.Second

// Serve serves the page of adapters at address, "host:port", until ctx ends: what a program does
// with an option --inspect. It returns the page's URL. With an empty address it does nothing. The
// page names peers, and its visitors may have requests measured (see [Handler.LetMeasure]), so the address is one that only operators reach, such as 127.0.0.1:6060.
func Serve(ctx context.Context, address string, ias ...*dat.IA) (url string, err error) {
	if address == "" {
		return "", nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: New(ias...).LetMeasure(), ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 1 << 14}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go run(s, l)
	return "http://" + l.Addr().String() + "/", nil
}

// run is the goroutine that serves the page until the server is closed.
func run(s *http.Server, l net.Listener) { _ = s.Serve(l) }
