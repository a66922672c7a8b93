package runtime_test

import (
	"context"
	"encoding/binary"
	"fmt"

	"godat/ep"
	dat "godat/runtime"
)

// A server tells each client the number of its connection. A program that gets the number
// back, in a header say, finds the connection by it, and looks that the peer may name it.
func ExampleConn_ID() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	conns := map[uint64]*dat.Conn{}
	ln, err := ia.Listen(ctx, "", dat.ConnConfig{Apart: true, Setup: func(c *dat.Conn) ([]byte, error) {
		conns[c.ID()] = c
		return binary.BigEndian.AppendUint64(nil, c.ID()), nil
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	accepted := make(chan error)
	go func() {
		_, err := ln.Accept(ep.RequestOf(<-ln.Requests()), nil)
		accepted <- err
	}()
	client, err := ia.Dial(ctx, ln.Addr(), dat.ConnConfig{})
	if err != nil || <-accepted != nil {
		fmt.Println("no connection:", err)
		return
	}
	id := binary.BigEndian.Uint64(client.Private())
	fmt.Println(conns[id].RemoteAddr().String() == client.LocalAddr().String())
	fmt.Println(client.RemoteAddr().String() == ln.Addr())
	// Output:
	// true
	// true
}
