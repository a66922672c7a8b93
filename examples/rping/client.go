package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	dat "godat/runtime"
)

// connectTime bounds an attempt to connect.
const connectTime = 30 * time.Second

// ping is the client. It ends after its count of pings, or when ctx is done.
func ping(ctx context.Context, ia *dat.IA, o *options, out io.Writer) (err error) {
	l, err := newLink(ia)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	source, err := l.pz.Alloc(o.Size, dat.LocalRead|dat.RemoteRead)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Free()) }()
	sink, err := l.pz.Alloc(o.Size, dat.LocalWrite|dat.RemoteWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Free()) }()

	if err := l.ep.Connect(dat.ConnectConfig{Addr: o.Addr, Qual: o.Port, Timeout: connectTime}); err != nil {
		return err
	}
	if err := l.wait(ctx, connected); err != nil {
		return fmt.Errorf("connect to %s:%d: %w", o.Addr, o.Port, err)
	}
	for i := 0; (o.Count == 0 || i < o.Count) && ctx.Err() == nil; i++ {
		text := source.Bytes()
		fill(text, i)
		clear(sink.Bytes())
		if err := l.once(ctx, source.Remote(0, o.Size), sink.Remote(0, o.Size)); err != nil {
			return fmt.Errorf("ping %d: %w", i, err)
		}
		if o.Validate && !bytes.Equal(text, sink.Bytes()) {
			return fmt.Errorf("ping %d came back with another content", i)
		}
		if o.Verbose {
			fmt.Fprintf(out, "ping data: %s\n", until0(sink.Bytes()))
		}
	}
	return l.hangUp(context.WithoutCancel(ctx))
}

// once makes one ping: the server reads source, and then writes sink.
func (l *link) once(ctx context.Context, source, sink dat.RemoteSegment) error {
	for _, r := range []dat.RemoteSegment{source, sink} {
		if err := l.send(ctx, r); err != nil {
			return err
		}
		if _, err := l.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the text of a ping: its number, then characters that begin at another one
// in each ping, and a zero at the end.
func fill(b []byte, number int) {
	const first, last = 'A', 'z'
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", number))
	for i := range b[n:] {
		b[n+i] = byte(first + (number+i)%(last-first+1))
	}
	b[len(b)-1] = 0
}

// until0 returns the text before the first zero.
func until0(b []byte) []byte {
	text, _, _ := bytes.Cut(b, []byte{0})
	return text
}
