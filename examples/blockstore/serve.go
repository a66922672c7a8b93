package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"godat/examples/blockstore/server"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// serve is the program with --listen: it serves until ctx is done.
func serve(ctx context.Context, o *options, out io.Writer) error {
	s, err := startServer(ctx, o, o.Listen, store.ReadWrite)
	if err != nil {
		return err
	}
	page, err := inspect.Serve(ctx, o.Inspect, o.Traces, s.ia)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	fmt.Fprintf(out, "serving %s on %v\n", o.Store, s.server.Addr())
	if page != "" {
		fmt.Fprintln(out, "shown at", page)
	}
	<-s.done
	return s.stop()
}

// running is a running server with its adapter and store.
type running struct {
	ia     *dat.IA
	store  *store.Store
	server *server.Server
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run; valid when done is closed
}

// startServer opens the store and serves it on addr; "" lets the provider
// choose the port.
func startServer(ctx context.Context, o *options, addr string, mode store.Mode) (r *running, err error) {
	cfg := server.Config{Addr: addr, Limits: o.limits()}
	if addr == "" {
		cfg.Sessions = o.Clients
	}
	if cfg.Log, err = o.logger(); err != nil {
		return nil, err
	}
	r = &running{done: make(chan struct{})}
	if r.store, err = store.Open(o.Store, mode); err != nil {
		return nil, err
	}
	cfg.Store = r.store
	if r.ia, err = dat.Open(ctx, o.Provider); err != nil {
		return nil, errors.Join(err, r.store.Close())
	}
	if r.server, err = server.New(r.ia, cfg); err != nil {
		return nil, errors.Join(err, r.ia.Close(), r.store.Close())
	}
	ctx, r.cancel = context.WithCancel(ctx)
	go r.run(ctx)
	return r, nil
}

// run is the server's goroutine; stop ends it.
func (r *running) run(ctx context.Context) {
	defer close(r.done)
	r.err = r.server.Run(ctx)
}

// stop ends the server in order, and closes its adapter and store.
func (r *running) stop() error {
	r.cancel()
	<-r.done
	return errors.Join(r.err, r.ia.Close(), r.store.Close())
}
