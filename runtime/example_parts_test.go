package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// A program gets a buffer, fills it, names it in a post, and puts it back when the
// operation has completed. Under Debug, the pool names the place that forgot a buffer.
func ExampleBufferPool() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	pz, err := ia.NewPZ()
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 2, Size: 4096, Debug: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := pool.Get()
	fmt.Fprintf(b, "hello")
	fmt.Printf("%q is %d bytes of a region\n", b.Bytes(), b.Segment().Len)
	b.Put()

	pool.Get() // never put back
	fmt.Println("a leak:", pool.Close() != nil)
	// Output:
	// "hello" is 5 bytes of a region
	// a leak: true
}

// A program reads a file into a buffer, lends the buffer to an operation, and takes it
// back with the completion. Under Debug, any use in between panics.
func ExampleBuffer() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		pool, err := p.pz.NewBufferPool(mem.BufferPoolConfig{Count: 4, Size: 512, Debug: true})
		if err != nil {
			return err
		}
		defer pool.Close()
		file := strings.NewReader("the contents of a file")
		b := pool.Get()
		n, err := file.Read(b.Resize(b.Cap()))
		if err != nil {
			return err
		}
		b.Resize(n)

		from := b.Segment()
		b.Lend()
		if err = p.client.PostRDMAWrite(uint64(b.Index()), 0, p.memory.Remote(0, 512), from); err != nil {
			return err
		}
		ev, err := p.wait()
		if err != nil {
			return err
		}
		b = pool.At(int(ev.Cookie))
		b.Return(int(ev.Length))
		fmt.Printf("%q, %v\n", b.Bytes(), ev.Err())
		b.Put()
		return nil
	})
	// Output: "the contents of a file", <nil>
}

// A program names memory to its peer in 16 bytes. What a peer sends may have any length.
func ExampleRemoteSegment() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		message, err := p.memory.Remote(1024, 512).MarshalBinary()
		if err != nil {
			return err
		}
		var theirs mem.RemoteSegment
		if err = theirs.UnmarshalBinary(message); err != nil {
			return err
		}
		fmt.Println(theirs.Len, "bytes, of which I write", theirs.Slice(64, 8).Len)
		fmt.Println(theirs.UnmarshalBinary(message[:3]))
		return nil
	})
	// Output:
	// 512 bytes, of which I write 8
	// mem.RemoteSegment.UnmarshalBinary: invalid parameter: 3 bytes; a remote segment has 16
}

// An outbox for an endpoint of the program's own posts what was gathered as one batch.
func ExampleNewOutbox() {
	withPair(evd.Config{QLen: 16}, func(p *pair) error {
		out := ep.NewOutbox(p.client, 8)
		for i := range 3 {
			err := out.Add(ep.DTO{
				Op: hw.OpWrite, Cookie: uint64(i),
				Segment: p.memory.Segment(64*i, 64), Remote: p.memory.Remote(1024+64*i, 64),
			})
			if err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		for range 3 {
			ev, err := p.wait()
			if err != nil {
				return err
			}
			fmt.Println(ev.Op, ev.Cookie, ev.Err())
		}
		return nil
	})
	// Output:
	// RDMA_WRITE 0 <nil>
	// RDMA_WRITE 1 <nil>
	// RDMA_WRITE 2 <nil>
}

// Answers that are ready go out together: one post, one doorbell.
func ExampleOutbox() {
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
	go answerTwo(ln)
	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		b, err := c.Receive(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", b.Bytes())
		c.Release(b)
	}
	fmt.Println(ln.Shutdown(ctx), c.Close())
	// Output:
	// first
	// second
	// <nil> <nil>
}

// answerTwo sends its client two messages as one batch.
func answerTwo(ln *dat.Listener) {
	c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-c.Events() // ESTABLISHED
	first, second := c.Buffer(), c.Buffer()
	fmt.Fprint(first, "first")
	fmt.Fprint(second, "second")
	err = c.Outbox().Add(ep.DTO{Op: hw.OpSend, Segment: first.Segment()})
	if err = errors.Join(err, c.Queue(second), c.Flush()); err != nil {
		fmt.Println(err)
		return
	}
	<-c.Events() // the first has been sent
	c.Release(first)
}
