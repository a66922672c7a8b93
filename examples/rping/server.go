package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	dat "godat/runtime"
)

// serve is the server. It ends when its client has disconnected, or when ctx is done.
// It calls ready, which may be nil, with the port.
func serve(ctx context.Context, ia *dat.IA, o *options, out io.Writer, ready func(port uint64)) (err error) {
	requests, err := ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 8})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, requests.Close()) }()
	listener, err := ia.NewPSP(dat.PSPConfig{Addr: o.Addr, Qual: o.Port, Dispatcher: requests})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if ready != nil {
		ready(listener.Qual())
	}
	l, err := newLink(ia)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	select {
	case ev := <-requests.C():
		if err := ev.Err(); err != nil {
			return err
		}
		if err := dat.RequestOf(ev).Accept(l.ep, nil); err != nil {
			return err
		}
	case <-ctx.Done():
		return nil
	}
	if err := l.wait(ctx, connected); err != nil {
		return err
	}
	return l.answer(ctx, o, out)
}

// answer answers pings until the client disconnects.
func (l *link) answer(ctx context.Context, o *options, out io.Writer) (err error) {
	buf, err := l.pz.Alloc(o.Size, dat.LocalRead|dat.LocalWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	for {
		source, err := l.next(ctx)
		if errors.Is(err, errGone) || ctx.Err() != nil {
			return nil // disconnected between two pings
		}
		if err != nil {
			return err
		}
		n, err := l.fetch(ctx, source[:], buf)
		if err != nil {
			return err
		}
		if o.Verbose {
			fmt.Fprintf(out, "server ping data: %s\n", until0(buf.Bytes()[:n]))
		}
		if err := l.put(ctx, buf, n); err != nil {
			return err
		}
	}
}

// fetch reads the memory that an advert names, tells the client that it is done, and
// returns the length.
func (l *link) fetch(ctx context.Context, advert []byte, buf *dat.LMR) (n int, err error) {
	r, err := parseAdvert(advert, len(buf.Bytes()))
	if err != nil {
		return 0, err
	}
	n = int(r.Len)
	if err := l.ep.PostRDMARead(moved, dat.Default, r, buf.Segment(0, n)); err != nil {
		return 0, err
	}
	if err := l.wait(ctx, moved); err != nil {
		return 0, err
	}
	return n, l.send(ctx, dat.RemoteSegment{})
}

// put writes the first n bytes of buf to the memory that the next advert names, and
// tells the client that it is done.
func (l *link) put(ctx context.Context, buf *dat.LMR, n int) error {
	advert, err := l.next(ctx)
	if err != nil {
		return err
	}
	r, err := parseAdvert(advert[:], len(buf.Bytes()))
	if err != nil {
		return err
	}
	n = min(n, int(r.Len))
	r.Len = uint32(n)
	if err := l.ep.PostRDMAWrite(moved, dat.Default, r, buf.Segment(0, n)); err != nil {
		return err
	}
	if err := l.wait(ctx, moved); err != nil {
		return err
	}
	return l.send(ctx, dat.RemoteSegment{})
}
