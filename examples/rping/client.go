package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// connectTime bounds an attempt to connect.
const connectTime = 30 * time.Second

// ping is the client. It ends after its count of pings, or when ctx is done.
func ping(ctx context.Context, ia *dat.IA, o *options, out io.Writer) (err error) {
	c, err := dial(ctx, ia, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	source, err := c.Alloc(o.Size, hw.LocalRead|hw.RemoteRead)
	if err != nil {
		return err
	}
	sink, err := c.Alloc(o.Size, hw.LocalWrite|hw.RemoteWrite)
	if err != nil {
		return err
	}
	for i := 0; (o.Count == 0 || i < o.Count) && ctx.Err() == nil; i++ {
		text := source.Bytes()
		fill(text, i)
		clear(sink.Bytes())
		for _, m := range []*mem.LMR{source, sink} { // the server reads source, and then writes sink
			if err := advertise(ctx, c, m.Remote(0, o.Size)); err != nil {
				return fmt.Errorf("ping %d: %w", i, err)
			}
		}
		if o.Validate && !bytes.Equal(text, sink.Bytes()) {
			return fmt.Errorf("ping %d came back with another content", i)
		}
		if o.Verbose {
			fmt.Fprintf(out, "ping data: %s\n", until0(sink.Bytes()))
		}
	}
	return c.Shutdown(context.WithoutCancel(ctx))
}

func dial(ctx context.Context, ia *dat.IA, o *options) (*dat.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	return ia.Dial(ctx, o.address(), connConfig)
}

// advertise sends an advert, and waits for the message that answers it.
func advertise(ctx context.Context, c *dat.Conn, r mem.RemoteSegment) error {
	var advert [advertSize]byte
	putAdvert(advert[:], r)
	if err := c.SendBytes(advert[:]); err != nil {
		return err
	}
	b, err := c.Receive(ctx)
	if err != nil {
		return err
	}
	defer c.Release(b)
	return checkSize(b.Bytes())
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
