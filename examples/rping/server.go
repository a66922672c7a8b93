package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// serve is the server. It ends when its client has disconnected, or when ctx is done.
// It calls ready, which may be nil, with the address that it listens on.
func serve(ctx context.Context, ia *dat.IA, o *options, out io.Writer, ready func(address string)) (err error) {
	ln, err := ia.Listen(ctx, o.address(), connConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ln.Close()) }()
	if ready != nil {
		ready(ln.Addr())
	}
	select {
	case ev := <-ln.Requests():
		c, err := ln.Accept(ep.RequestOf(ev), nil)
		if err != nil {
			return err
		}
		return answer(ctx, c, o, out)
	case <-ctx.Done():
		return nil
	}
}

// answer answers pings until the client disconnects.
func answer(ctx context.Context, c *dat.Conn, o *options, out io.Writer) error {
	buf, err := c.Alloc(o.Size, hw.LocalRead|hw.LocalWrite)
	if err != nil {
		return err
	}
	for {
		source, err := c.Receive(ctx)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil // disconnected between two pings
		}
		if err != nil {
			return err
		}
		n, err := move(ctx, c, hw.OpRead, source, buf, o.Size)
		if err != nil {
			return err
		}
		if o.Verbose {
			fmt.Fprintf(out, "server ping data: %s\n", until0(buf.Bytes()[:n]))
		}
		sink, err := c.Receive(ctx)
		if err != nil {
			return fmt.Errorf("in the middle of a ping: %w", err)
		}
		if _, err := move(ctx, c, hw.OpWrite, sink, buf, n); err != nil {
			return err
		}
	}
}

// move reads or writes at most n bytes of the memory that an advert names, answers the
// advert in its own buffer, and returns how many bytes it were.
func move(ctx context.Context, c *dat.Conn, op hw.Op, advert *mem.Buffer, buf *mem.LMR, n int) (int, error) {
	r, err := parseAdvert(advert.Bytes(), len(buf.Bytes()))
	if err != nil {
		return 0, err
	}
	n = min(n, int(r.Len))
	if err := c.Do(ctx, ep.DTO{Op: op, Segment: buf.Segment(0, n), Remote: r.Slice(0, n)}); err != nil {
		return 0, err
	}
	return n, c.Send(advert)
}
