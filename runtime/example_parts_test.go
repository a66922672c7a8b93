package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
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

// Contexts keeps a value of the program's own type for each operation, under the
// operation's cookie, until its event comes.
func ExampleContexts() {
	type request struct {
		file  string
		block int
	}
	requests := evd.NewContexts[request](16)
	cookie, ok := requests.Put(request{"go.mod", 3})
	fmt.Println("kept:", ok) // now post an operation with the cookie

	ev := event.Event{Cookie: cookie} // as in the operation's completion
	r, ok := requests.Take(ev.Cookie)
	fmt.Println(r.file, r.block, ok)
	_, ok = requests.Take(ev.Cookie)
	fmt.Println("a second time:", ok)
	// Output:
	// kept: true
	// go.mod 3 true
	// a second time: false
}

// A sender takes a credit for each message. Here the peer posts one receive with each
// answer.
func ExampleCredits() {
	credits := ep.NewCredits(2) // the peer has posted two receives
	for i := range 3 {
		fmt.Println("request", i, "may be sent:", credits.Take())
	}
	credits.Grant(1) // the answer that the peer sent with another receive posted
	fmt.Println("request 2 may be sent:", credits.Take())
	// Output:
	// request 0 may be sent: true
	// request 1 may be sent: true
	// request 2 may be sent: false
	// request 2 may be sent: true
}

// A receiver owes its peer the credits for what it has posted, and tells the number with
// its next message. Here a slice is the wire.
func ExampleCredits_Pay() {
	sender, receiver := ep.NewCredits(0), ep.NewCredits(0)
	receiver.Owe(3) // three receives are posted
	receiver.Owe(1) // and one more
	answer := binary.BigEndian.AppendUint16(nil, uint16(receiver.Pay()))

	fmt.Println("before the answer:", sender.Take())
	sender.Grant(int(binary.BigEndian.Uint16(answer)))
	fmt.Println("messages that may be sent:", sender.Left())
	fmt.Println("still owed:", receiver.Pay())
	// Output:
	// before the answer: false
	// messages that may be sent: 4
	// still owed: 0
}

// A channel that the program closes at its end wakes a goroutine that waits for events.
func ExampleUntil() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	events, err := ia.NewDispatcher(evd.Config{QLen: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		_, _, err := events.Wait(evd.Until(stop), 1)
		ended <- err
	}()
	close(stop)
	fmt.Println(errors.Is(<-ended, context.Canceled))
	// Output: true
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
