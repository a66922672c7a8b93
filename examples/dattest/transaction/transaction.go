// Package transaction is the transaction test: threads of endpoints, on each of which
// both sides go through a list of sends, RDMA reads and RDMA writes, in every
// iteration.
package transaction

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"godat/evd"
	"godat/examples/dattest/wire"
	dat "godat/runtime"
)

// Side is one side of a test.
type Side struct {
	IA     *dat.IA
	Test   *wire.Transaction
	Server bool
	Addr   string // the server's; a client needs it
	// Port is the port of the first endpoint of the first thread; the other endpoints'
	// follow. If a server has 0, the provider chooses each port, and Ready gets them.
	Port uint64
	// Ports, of a client, are the ports that the server's Ready got. They take
	// precedence over Port.
	Ports []uint64
	CNO   bool // each thread waits for all its completions at one CNO
	// Graceful makes the client end each connection gracefully, and the server wait for
	// that. Otherwise each side breaks its connections when it has finished, as the C
	// program does.
	Graceful bool
	// Ready, of a server, is called with the port of each endpoint when all of them
	// listen.
	Ready func(ports []uint64) error
}

// Run runs the side's threads. When one of them fails, it cancels the others.
func (s *Side) Run(ctx context.Context) (Stats, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := int(s.Test.Threads)
	threads := make([]*thread, n)
	var listening, synced sync.WaitGroup
	listening.Add(n)
	synced.Add(n)
	for i := range threads {
		threads[i] = &thread{side: s, index: i, synced: &synced}
	}
	var running sync.WaitGroup
	for _, t := range threads {
		running.Go(func() { t.main(ctx, cancel, &listening) })
	}
	if s.Server {
		listening.Wait()
		if ctx.Err() == nil {
			var ports []uint64
			for _, t := range threads {
				for _, e := range t.ends {
					ports = append(ports, e.link.Qual())
				}
			}
			if err := s.Ready(ports); err != nil {
				cancel(err)
			}
		}
	}
	running.Wait()
	total := Stats{Threads: n, EPs: int(s.Test.EPs)}
	var errs []error
	for _, t := range threads {
		total.add(&t.stats)
		if t.err != nil && !errors.Is(t.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("thread %d: %w", t.index, t.err))
		}
	}
	if len(errs) == 0 && ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	return total, errors.Join(errs...)
}

// thread is one thread of a side.
type thread struct {
	side   *Side
	index  int
	synced *sync.WaitGroup // done when all threads have had their peers' messages
	cno    *evd.CNO        // nil without Side.CNO
	ends   []*end
	stats  Stats
	err    error
}

// main is the thread's body.
func (t *thread) main(ctx context.Context, cancel context.CancelCauseFunc, listening *sync.WaitGroup) {
	// However this thread ends, the others must not wait for it.
	listens, synced := sync.OnceFunc(listening.Done), sync.OnceFunc(t.synced.Done)
	defer synced()
	defer listens()
	if t.err = t.run(ctx, listens, synced); t.err != nil {
		cancel(t.err)
	}
}

func (t *thread) run(ctx context.Context, listens, synced func()) (err error) {
	pz, err := t.side.IA.NewPZ()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close(), pz.Close()) }()
	if t.side.CNO {
		if t.cno, err = t.side.IA.NewCNO(evd.CNOConfig{}); err != nil {
			return err
		}
	}
	for i := range int(t.side.Test.EPs) {
		e, err := t.open(pz, i)
		if err != nil {
			return err
		}
		t.ends = append(t.ends, e)
	}
	listens()
	for _, e := range t.ends {
		if err := e.connect(ctx); err != nil {
			return fmt.Errorf("endpoint %d: %w", e.index, err)
		}
	}
	if err := t.begin(ctx, synced); err != nil {
		return err
	}
	start := time.Now()
	if err := t.iterate(ctx); err != nil {
		return err
	}
	t.stats.Time = time.Since(start)
	return t.each(func(e *end) error { return e.disconnect(ctx) })
}

func (t *thread) close() error {
	var errs []error
	for _, e := range t.ends {
		errs = append(errs, e.link.Close())
	}
	if t.cno != nil {
		errs = append(errs, t.cno.Close())
	}
	return errors.Join(errs...)
}

// each calls do for each endpoint.
func (t *thread) each(do func(*end) error) error {
	for _, e := range t.ends {
		if err := do(e); err != nil {
			return fmt.Errorf("endpoint %d: %w", e.index, err)
		}
	}
	return nil
}

// begin posts the receives and synchronizes with the peer: each of the server's threads
// sends a message to its counterpart at the client; when all of the client's threads have
// received theirs, they answer, and the server's threads begin.
func (t *thread) begin(ctx context.Context, synced func()) error {
	if err := t.each((*end).postRecvs); err != nil {
		return err
	}
	if t.side.Test.Validate {
		t.fill(0)
	}
	return t.sync(ctx, syncSend, syncRecv, func() error {
		synced()
		t.synced.Wait()
		return ctx.Err()
	})
}

// sync exchanges a message with the peer on each endpoint. The server sends first; the
// client calls between when it has the message, and then sends its own.
func (t *thread) sync(ctx context.Context, send, recv int, between func() error) error {
	sendAll := func() error {
		if err := t.each(func(e *end) error { return e.link.PostSend(e.control, send, syncSize) }); err != nil {
			return err
		}
		return t.each(func(e *end) error { return e.sent(ctx, send, syncSize) })
	}
	recvAll := func() error {
		return t.each(func(e *end) error { return e.link.Received(ctx, recv, syncSize) })
	}
	if t.side.Server {
		if err := sendAll(); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		return recvAll()
	}
	if err := recvAll(); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := between(); err != nil {
		return err
	}
	return sendAll()
}
