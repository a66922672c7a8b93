// Command kv is a key-value store, and the program to learn from. Values of more than
// 512 bytes go by RDMA, straight between the client's and the server's memory. This file
// has all that is about connections; store.go has what the messages say.
//
//	kv -listen 127.0.0.1:7000          a server, until it is interrupted
//	kv -addr 127.0.0.1:7000 put k v    a client
//	kv -addr 127.0.0.1:7000 get k
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	dat "godat/runtime"
)

func main() {
	provider := flag.String("provider", "iwarp", "provider and device to run on")
	listen := flag.String("listen", "", "serve on this `address`")
	addr := flag.String("addr", "", "the server's `address`")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt) // in force until the process exits
	ia, err := dat.Open(ctx, *provider)
	if err == nil && *listen != "" {
		err = errors.Join(serve(ctx, ia, *listen, os.Stdout), ia.Close())
	} else if err == nil {
		err = errors.Join(ask(ctx, ia, *addr, flag.Args(), os.Stdout), ia.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(1)
	}
}

// serve serves until ctx ends. It is one goroutine, so the values need no lock.
func serve(ctx context.Context, ia *dat.IA, address string, out io.Writer) error {
	ln, err := ia.Listen(ctx, address, dat.ConnConfig{Setup: open})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ln.Addr())
	values := make(map[string]string)
	for {
		select { // each case sets err, or returns
		case ev := <-ln.Requests():
			_, err = ln.Accept(dat.RequestOf(ev), nil)
		case ev := <-ln.Events():
			if ev.Number == dat.Closed { // the listener has been closed: nothing comes any more
				return ev.Err()
			}
			c := dat.ConnOf(ev)
			if b := c.Message(ev); b != nil { // a request; the answer goes out in its buffer
				text := answer(values, c.Context.([]byte), string(b.Bytes()))
				copy(b.Resize(len(text)), text)
				err = c.Send(b)
			} else if err = ev.Err(); ev.Ended() {
				err = errors.Join(err, c.Close())
			}
		case <-ctx.Done():
			return ln.Shutdown(context.WithoutCancel(ctx))
		}
		if err != nil { // the error of one client: the others go on
			fmt.Fprintln(out, "kv:", err)
		}
	}
}

// open gives a client a window of the server's memory, and tells it where that is.
func open(c *dat.Conn) (private []byte, err error) {
	window, err := c.Alloc(longest, dat.RemoteRead|dat.RemoteWrite)
	if err != nil {
		return nil, err
	}
	c.Context = window.Bytes()
	return window.Remote(0, longest).MarshalBinary()
}

// ask sends the arguments as a request, and prints the value of the answer.
func ask(ctx context.Context, ia *dat.IA, address string, args []string, out io.Writer) (err error) {
	c, err := ia.Dial(ctx, address, dat.ConnConfig{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Shutdown(ctx)) }()
	window, noWindow := dat.ParseRemoteSegment(c.Private())
	memory, noMemory := c.Alloc(longest, dat.LocalRead|dat.LocalWrite)
	if err := errors.Join(noWindow, noMemory); err != nil {
		return err
	}
	move := func(op dat.Op, n int) error { // the RDMA of a long value
		if n == 0 {
			return nil
		}
		return c.Do(ctx, dat.DTO{Op: op, Segment: memory.Segment(0, n), Remote: window.Slice(0, n)})
	}
	text, n := request(memory.Bytes(), args)
	if err := move(dat.OpWrite, n); err != nil {
		return err
	}
	// When the server has this message, it has the bytes that were written before it.
	if err := c.SendBytes([]byte(text)); err != nil {
		return err
	}
	b, err := c.Receive(ctx)
	if err != nil {
		return err
	}
	defer c.Release(b)
	if err := move(dat.OpRead, long(string(b.Bytes()))); err != nil {
		return err
	}
	value, err := unpack(memory.Bytes(), string(b.Bytes()))
	fmt.Fprintln(out, value)
	return err
}
