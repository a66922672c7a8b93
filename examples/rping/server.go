package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	dat "godat/runtime"
)

// serve is the server: until its client has disconnected, or until ctx is done. It
// tells ready, which may be nil, its address.
func serve(ctx context.Context, ia *dat.IA, o *options, out io.Writer, ready func(address string)) (err error) {
	ln, err := ia.Listen(ctx, o.address(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ln.Close()) }()
	if ready != nil {
		ready(ln.Addr())
	}
	select {
	case ev := <-ln.Requests():
		c, err := ln.Accept(dat.RequestOf(ev), nil)
		if err != nil {
			return err
		}
		return answer(ctx, c, o, out)
	case <-ctx.Done():
		return nil
	}
}

// answer answers pings until the client leaves.
func answer(ctx context.Context, c *dat.Conn, o *options, out io.Writer) error {
	buf, err := c.Alloc(o.Size, dat.LocalRead|dat.LocalWrite)
	if err != nil {
		return err
	}
	for {
		source, err := next(ctx, c, o.Size)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil // between two pings
		}
		if err != nil {
			return err
		}
		n := int(source.Len)
		if err := move(ctx, c, dat.OpRead, buf.Segment(0, n), source); err != nil {
			return err
		}
		if o.Verbose {
			fmt.Fprintf(out, "server ping data: %s\n", until0(buf.Bytes()[:n]))
		}
		sink, err := next(ctx, c, o.Size)
		if err != nil {
			return err
		}
		n = min(n, int(sink.Len))
		if err := move(ctx, c, dat.OpWrite, buf.Segment(0, n), sink.Slice(0, n)); err != nil {
			return err
		}
	}
}

// move reads what the client has advertised, or writes it, and says so.
func move(ctx context.Context, c *dat.Conn, op dat.Op, local dat.Segment, remote dat.RemoteSegment) error {
	if err := c.Do(ctx, dat.DTO{Op: op, Segment: local, Remote: remote}); err != nil {
		return err
	}
	return send(c, dat.RemoteSegment{})
}
