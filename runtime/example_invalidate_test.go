package runtime_test

import (
	"context"
	"fmt"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// A client lends a server a window for one answer. With the answer the server gives the
// window back: from then on no peer reaches the client's memory by it.
func ExampleConn_QueueInvalidate() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop") // whose Attr().Ops has OpSendInvalidate
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Message: 64})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error)
	go func() { served <- answerAndInvalidate(ln) }()

	c, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{Message: 64})
	if err != nil {
		fmt.Println(err)
		return
	}
	memory, err := c.Alloc(64, hw.AllPrivileges)
	if err != nil {
		fmt.Println(err)
		return
	}
	window, err := c.PZ().NewRMR()
	if err != nil {
		fmt.Println(err)
		return
	}
	lent, err := c.Endpoint.PostBind(1, 0, window, mem.Binding{Segment: memory.Segment(0, 64), Privileges: hw.RemoteWrite})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println((<-c.Events()).Number) // of the bind
	request, _ := lent.MarshalBinary()
	if err := c.SendBytes(request); err != nil {
		fmt.Println(err)
	}
	answer := <-c.Events()
	invalidated, ok := answer.InvalidatedContext()
	fmt.Printf("%s %v %v\n", c.Message(answer).Bytes(), ok, invalidated == lent.Context)
	fmt.Println(<-served, window.Free(), c.Close(), ln.Close())
	// Output:
	// RMR_BIND_COMPLETION
	// done true true
	// <nil> <nil> <nil> <nil>
}

// answerAndInvalidate answers the first request of a connection.
func answerAndInvalidate(ln *dat.Listener) error {
	c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
	if err != nil {
		return err
	}
	<-ln.Events() // the connection is up
	b := c.Message(<-ln.Events())
	lent, err := mem.ParseRemoteSegment(b.Bytes())
	if err != nil {
		return err
	}
	copy(b.Resize(4), "done")
	if err := c.QueueInvalidate(b, lent.Context); err != nil {
		return err
	}
	return c.Flush()
}
