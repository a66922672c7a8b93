package runtime_test

import (
	"context"
	"fmt"

	"godat/ep"
	dat "godat/runtime"
)

// A program that has waited long for a peer looks whether octets still move: then the peer is behind a slow
// link, and not stuck.
func ExampleEndpoint_flow() {
	ia, err := dat.Open(context.Background(), "iwarp:127.0.0.1")
	if err != nil {
		panic(err)
	}
	defer ia.Close()
	ln, err := ia.Listen(context.Background(), "127.0.0.1:0", dat.ConnConfig{})
	if err != nil {
		panic(err)
	}
	go func() { _, _ = ln.Accept(ep.RequestOf(<-ln.Requests()), nil) }()
	conn, err := ia.Dial(context.Background(), ln.Addr(), dat.ConnConfig{})
	if err != nil {
		panic(err)
	}
	before, told := conn.Endpoint.Flow()
	if err = conn.SendBytes([]byte("a message that takes a while")); err != nil {
		panic(err)
	}
	for moves := false; !moves; {
		now, _ := conn.Endpoint.Flow()
		moves = now.Passed > before.Passed || now.Came > before.Came
	}
	fmt.Println("told:", told, "and it moves")
	// Output: told: true and it moves
}
