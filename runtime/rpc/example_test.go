package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// A server answers requests from a channel, beside what else it waits for. The value of a
// call that does not fit a message goes by RDMA into the caller's memory.
func Example() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	server, err := rpc.Listen(ctx, ia, "", rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := server.PZ().Alloc(size, hw.LocalRead)
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(value.Bytes(), bytes.Repeat([]byte("v"), size))
	go serve(server, value)
	if err := ask(ctx, ia, server.Addr()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(errors.Join(value.Free(), server.Shutdown(ctx)))
	// Output:
	// hello, world
	// 65536 bytes of v
	// <nil>
}

const (
	greet = 1
	fetch = 2
	size  = 64 << 10 // of the value
)

// serve answers requests until the server is closed.
func serve(server *rpc.Server, value *mem.LMR) {
	for ev := range server.Requests() {
		if ev.Number == event.Closed { // the last event
			return
		}
		var err error
		switch r := rpc.RequestOf(ev); r.Method() {
		case greet:
			err = r.Reply(append([]byte("hello, "), r.Payload()...))
		case fetch:
			if err = r.Write(value.Segment(0, min(size, r.SinkLen())), 0); err == nil {
				err = r.Reply(nil)
			} else {
				err = errors.Join(err, r.Fail(rpc.CodeUser, "the value did not reach you"))
			}
		default:
			err = r.Fail(rpc.CodeUnknown, "no such method")
		}
		if err != nil {
			fmt.Println(err) // of one client: the others go on
		}
	}
}

// ask is a client.
func ask(ctx context.Context, ia *dat.IA, address string) error {
	client, err := rpc.Dial(ctx, ia, address, rpc.Config{})
	if err != nil {
		return err
	}
	answer, err := client.Call(ctx, rpc.Call{Method: greet, Payload: []byte("world")}, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", answer)
	memory, err := client.PZ().Alloc(size, hw.LocalRead|hw.LocalWrite|hw.RemoteWrite)
	if err != nil {
		return err
	}
	if _, err = client.Call(ctx, rpc.Call{Method: fetch, Sink: memory.Remote(0, size)}, nil); err != nil {
		return err
	}
	fmt.Printf("%d bytes of %c\n", len(memory.Bytes()), memory.Bytes()[0])
	if err := memory.Free(); err != nil {
		return err
	}
	return client.Close()
}
