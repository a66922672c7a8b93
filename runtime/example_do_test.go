package runtime_test

import (
	"context"
	"fmt"

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
		shared, err := c.Alloc(4096, dat.RemoteRead|dat.RemoteWrite)
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
		_, err := ln.Accept(dat.RequestOf(<-ln.Requests()), nil)
		accepted <- err
	}()
	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accepted:", <-accepted)
	theirs, err := dat.ParseRemoteSegment(c.Private())
	if err != nil {
		fmt.Println(err)
		return
	}
	mine, err := c.Alloc(10, dat.LocalRead|dat.LocalWrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	copy(mine.Bytes(), "hello")
	err = c.Do(ctx,
		dat.DTO{Op: dat.OpWrite, Segment: mine.Segment(0, 5), Remote: theirs.Slice(100, 5)},
		dat.DTO{Op: dat.OpRead, Segment: mine.Segment(5, 5), Remote: theirs.Slice(100, 5)})
	fmt.Printf("%s %v\n", mine.Bytes(), err)
	fmt.Println(c.Close(), ln.Close())
	// Output:
	// accepted: <nil>
	// hellohello <nil>
	// <nil> <nil>
}
