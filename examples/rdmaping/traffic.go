package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// play is the traffic of messages of one size.
func (t *perf) play(ctx context.Context, size int) error {
	switch {
	case t.o.Test == "send_lat":
		g := &game{o: t.o, size: size, conns: []*dat.Conn{t.links[0].c}}
		return g.play(ctx)
	case t.o.Test == "write_lat":
		return t.rally(ctx, t.links[0], size)
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, l := range t.links {
		if t.s.client || t.o.Both {
			all.Go(func() error { return t.stream(ctx, l, size) })
		}
		if t.o.sends() && (!t.s.client || t.o.Both) {
			all.Go(func() error { return t.take(ctx, l, size) })
		}
	}
	return all.Wait()
}

// request is the test's request of messages of a size.
func (t *perf) request(l *link, size int) ep.DTO {
	one := ep.DTO{Segment: l.region.Segment(t.apart(), size), Remote: l.peer.memory}
	one.Remote.Len = uint32(size) // which perftest does not say
	verb, _, _ := strings.Cut(t.o.Test, "_")
	switch verb {
	case "send":
		one.Op, one.Remote = hw.OpSend, mem.RemoteSegment{}
	case "write":
		one.Op = hw.OpWrite
	case "read":
		one.Op = hw.OpRead
	case "atomic":
		one.Op, one.Operand = hw.OpFetchAdd, 1
	}
	return one
}

// stream makes all requests of a connection, a batch at a time.
func (t *perf) stream(ctx context.Context, l *link, size int) error {
	batch := make([]ep.DTO, t.batch())
	for i := range batch {
		batch[i] = t.request(l, size)
	}
	for left := t.o.Count; left > 0; {
		n := min(left, len(batch))
		if err := l.c.Do(ctx, batch[:n]...); err != nil {
			return fmt.Errorf("after %d of %d: %w", t.o.Count-left, t.o.Count, l.why(ctx, err))
		}
		left -= n
	}
	return nil
}

// why adds to the error of a request why the connection ended, if it did.
func (l *link) why(ctx context.Context, failed error) error {
	if errors.Is(failed, hw.StatusRemoteAccess.Err()) {
		failed = fmt.Errorf("the peer's memory is not for this request: give both ends the same test and size (-s or -a) (%w)", failed)
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	b, err := l.c.Receive(ctx)
	if err == nil || ctx.Err() != nil {
		l.c.Release(b)
		return failed
	}
	return fmt.Errorf("%w: %w", failed, err)
}

// take takes all messages of a connection.
func (t *perf) take(ctx context.Context, l *link, size int) error {
	g := game{o: t.o, size: size}
	for i := range t.o.Count {
		b, err := l.c.Receive(ctx)
		if err != nil {
			return fmt.Errorf("after %d of %d messages: %w", i, t.o.Count, err)
		}
		err = g.look(b.Bytes())
		l.c.Release(b)
		if err != nil {
			return err
		}
	}
	return nil
}

// firstWrites is how many times the patience with a peer the first write of a size may take.
const firstWrites = 3

// rally answers writes by writes. The last byte of each is its number. The server begins, as
// perftest's does.
func (t *perf) rally(ctx context.Context, l *link, size int) error {
	write := t.request(l, size)
	last := &l.region.Bytes()[t.apart()+size-1]
	for i := range t.o.Count {
		if t.s.client {
			if err := t.see(ctx, l, size, i); err != nil {
				return err
			}
			if i == t.o.Count-1 {
				ctx = t.s.why // the server leaves when it has this last write, before its completion is here
			}
		}
		*last = byte(i + 1)
		if err := l.c.Do(ctx, write); err != nil {
			return fmt.Errorf("after %d of %d: %w", i, t.o.Count, l.why(ctx, err))
		}
		if !t.s.client {
			if err := t.see(ctx, l, size, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// errUnseen is the error of an end that waits for a write whose last byte is elsewhere.
var errUnseen = errors.New("no write has come whose last byte is that of a message of this size: give both ends the same size (-s or -a)")

// see waits until the peer's write i is in this end's memory. No event tells of it. Both ends
// are ready for the first one, so it comes soon.
func (t *perf) see(ctx context.Context, l *link, size, i int) error {
	if i == 0 && t.s.patience > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, firstWrites*t.s.patience, errUnseen)
		defer cancel()
	}
	const looks = 1000 // between two questions whether to go on
	memory := l.region.Bytes()[:size]
	for {
		over := context.Cause(ctx) // asked before the last look
		select {
		case ev := <-l.c.Events():
			if ev.Ended() {
				over = ev.Err()
			}
		default:
		}
		for range looks {
			if glance(memory) == byte(i+1) {
				return nil
			}
			runtime.Gosched() // the peer may run on this processor
		}
		if over != nil {
			return fmt.Errorf("after %d of %d: %w", i, t.o.Count, over)
		}
	}
}

// glance reads the last byte of memory that a device may be writing, which is in no order that
// the race detector could know.
//
//go:noinline
//go:norace
func glance(memory []byte) byte { return memory[len(memory)-1] }
