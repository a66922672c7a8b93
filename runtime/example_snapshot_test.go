package runtime_test

import (
	"context"
	"fmt"

	dat "godat/runtime"
)

// What lives on an adapter, and what it does: here a listener, and both ends of a
// connection that has carried a message.
func ExampleIA_Snapshot() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	ln, err := ia.Listen(context.Background(), "", dat.ConnConfig{})
	if err != nil {
		panic(err)
	}
	client, err := ln.Dial(ln.Addr(), nil)
	if err != nil {
		panic(err)
	}
	if _, err = ln.Accept(dat.RequestOf(<-ln.Requests()), nil); err != nil {
		panic(err)
	}
	for ev := range ln.Events() {
		if ev.Number == dat.Established && dat.ConnOf(ev) == client {
			err = client.SendBytes([]byte("hello"))
		}
		if err != nil || ev.Op == dat.OpRecv {
			break
		}
	}
	now, err := ia.Snapshot()
	if err != nil {
		panic(err)
	}
	for _, l := range now.Listeners {
		fmt.Println(l.Accepted, "accepted,", l.Taken, "of", l.Conns, "places taken")
	}
	for _, c := range now.Conns {
		for _, m := range c.Endpoint.Receives.Moved {
			fmt.Println(c.Endpoint.State, m.Kind, m.Operations, m.Octets)
		}
	}
	// Output:
	// 1 accepted, 2 of 128 places taken
	// CONNECTED RECEIVE 1 5
}
