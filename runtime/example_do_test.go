package runtime_test

import (
	"context"
	"fmt"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// A server tells each client where 4096 bytes of its memory are. The client writes there, and
// reads what it has written: Do posts both at once, and waits until both have completed. Then
// their memory is the client's again.
func ExampleConn_Do() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Apart: true, Setup: func(c *dat.Conn) ([]byte, error) {
		shared, err := c.Alloc(4096, hw.RemoteRead|hw.RemoteWrite)
		if err != nil {
			return nil, err
		}
		return shared.Remote(0, 4096).AppendBinary(nil)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	accepted := make(chan error, 1)
	go func() {
		_, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		accepted <- err
	}()
	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accepted:", <-accepted)
	theirs, err := mem.ParseRemoteSegment(c.Private())
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, err := c.Alloc(10, hw.LocalRead|hw.LocalWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(mine.Bytes(), "hello")
	err = c.Do(ctx,
		ep.DTO{Op: hw.OpWrite, Segment: mine.Segment(0, 5), Remote: theirs.Slice(100, 5)},
		ep.DTO{Op: hw.OpRead, Segment: mine.Segment(5, 5), Remote: theirs.Slice(100, 5)})
	fmt.Printf("%s %v\n", mine.Bytes(), err)
	fmt.Println(c.Close(), ln.Close())
	// Output:
	// accepted: <nil>
	// hellohello <nil>
	// <nil> <nil>
}
