package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// One goroutine serves all connections from one channel. It answers a message in the
// buffer that the message came in.
func ExampleListener() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Depth: 4, Message: 64})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, served := make(chan struct{}), make(chan error)
	go echo(ln, stop, served)

	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{Depth: 4, Message: 64})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"one", "two"} {
		b, err := c.WaitBuffer(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Fprint(b, text)
		if err := c.Send(b); err != nil {
			fmt.Println(err)
		}
		b, err = c.Receive(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", b.Bytes())
		c.Release(b)
	}
	close(stop)
	fmt.Println("served:", <-served)
	// Output:
	// one
	// two
	// served: <nil>
}

// echo serves until stop is closed.
func echo(ln *dat.Listener, stop <-chan struct{}, served chan<- error) {
	for {
		var err error
		select {
		case ev := <-ln.Requests():
			_, err = ln.Accept(ep.RequestOf(ev), nil)
		case ev := <-ln.Events():
			switch c := dat.ConnOf(ev); {
			case ev.Number == event.Closed: // the listener has been closed elsewhere
				served <- ev.Err()
				return
			case ev.Ended():
				err = c.Close()
			case ev.Op == hw.OpRecv:
				err = c.Send(c.Message(ev))
			}
		case <-stop:
			served <- ln.Shutdown(context.Background())
			return
		}
		if err != nil {
			fmt.Println(err) // the error of one connection: the others go on
		}
	}
}

// With Apart each connection has a channel of its own, so it can be served by a
// goroutine that waits for nothing else.
func ExampleConn_Receive() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Apart: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	var serving sync.WaitGroup
	ended := make(chan error)
	accept := func() { // until the listener is closed
		for {
			c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), []byte("welcome"))
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // the peer is rejected
			}
			serving.Go(func() {
				for {
					b, err := c.Receive(ctx)
					if err != nil { // io.EOF after an orderly end
						ended <- err
						return
					}
					if err := c.Send(b); err != nil {
						ended <- err
						return
					}
				}
			})
		}
	}
	serving.Go(accept)
	for _, name := range []string{"a", "b"} {
		c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{Private: []byte(name)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", c.Private())
		if err := c.Shutdown(ctx); err != nil {
			fmt.Println(err)
		}
		fmt.Println("the client", name, "ended:", <-ended)
	}
	fmt.Println(ln.Shutdown(ctx))
	serving.Wait()
	// Output:
	// welcome
	// the client a ended: EOF
	// welcome
	// the client b ended: EOF
	// <nil>
}

// A request and its answer, for a goroutine that waits for nothing else.
func ExampleConn_SendBytes() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, served := make(chan struct{}), make(chan error)
	go echo(ln, stop, served)
	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.SendBytes([]byte("a question")); err != nil {
		fmt.Println(err)
		return
	}
	answer, err := c.Receive(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", answer.Bytes())
	c.Release(answer)
	close(stop)
	fmt.Println("served:", <-served)
	// Output:
	// a question
	// served: <nil>
}

// RDMA on a connection: its events come to the connection's channel, with cookies from
// a table that keeps what each operation is for. Setup tells the peer where the memory
// is.
func ExampleConn() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	var window *mem.LMR
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Setup: func(c *dat.Conn) (private []byte, err error) {
		if window, err = c.Alloc(64, hw.RemoteWrite); err != nil {
			return nil, err
		}
		return window.Remote(0, 64).MarshalBinary()
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _, _ = ln.Accept(ep.RequestOf(<-ln.Requests()), nil) }()
	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	memory, err := c.Alloc(64, hw.LocalRead)
	if err != nil {
		fmt.Println(err)
		return
	}
	there, err := mem.ParseRemoteSegment(c.Private())
	if err != nil {
		fmt.Println(err)
		return
	}

	type write struct{ at, n int }
	copy(memory.Bytes(), "hello, window")
	writes := []write{{0, 5}, {5, 8}}
	for i, w := range writes {
		err := c.Endpoint.PostRDMAWrite(uint64(i), hw.Default, there.Slice(w.at, w.n), memory.Segment(w.at, w.n))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for range 2 {
		ev := <-c.Events()
		w := writes[ev.Cookie]
		fmt.Println(ev.Op, "of", w.n, "bytes at", w.at, ev.Err())
	}
	fmt.Printf("%s\n", window.Bytes()[:13]) // on loop, the bytes of a completed write have arrived
	fmt.Println(c.Close(), ln.Close())
	// Output:
	// RDMA_WRITE of 5 bytes at 0 <nil>
	// RDMA_WRITE of 8 bytes at 5 <nil>
	// hello, window
	// <nil> <nil>
}

// Shutdown lets posted sends complete, tells the peer, and gives everything back.
func ExampleConn_Shutdown() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := ln.Dial(ln.Addr(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil); err != nil {
		fmt.Println(err)
		return
	}
	for ended := 0; ended < 1; {
		ev := <-ln.Events()
		peer := dat.ConnOf(ev)
		switch {
		case ev.Number == event.Established && peer == c:
			fmt.Println("sent:", c.SendBytes([]byte("goodbye")))
			fmt.Println("shut down:", c.Shutdown(ctx))
		case ev.Op == hw.OpRecv:
			b := peer.Message(ev)
			fmt.Printf("received: %s\n", b.Bytes())
			peer.Release(b)
		case ev.Ended() && peer != c:
			fmt.Println("ended:", ev.Err())
			ended++
		}
	}
	fmt.Println(ln.Shutdown(ctx), ia.CloseGraceful())
	// Output:
	// sent: <nil>
	// shut down: <nil>
	// received: goodbye
	// ended: <nil>
	// <nil> <nil>
}
