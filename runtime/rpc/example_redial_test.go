package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// The server is started anew under its client. A call that has not run waits for the next
// server. One that may have run would fail, unless it is marked as idempotent.
func ExampleConfig_redial() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
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
	go sayYes(ctx, server)
	client, err := rpc.Dial(ctx, ia, server.Addr(), rpc.Config{Redial: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	ask := func() {
		got, err := client.Call(ctx, rpc.Call{Payload: []byte("are you there?"), Idempotent: true}, nil)
		fmt.Printf("%s %v\n", got, err)
	}
	ask()
	fmt.Println(server.Shutdown(ctx)) // as on SIGTERM: the calls that came are answered
	if server, err = rpc.Listen(ctx, ia, server.Addr(), rpc.Config{}); err != nil {
		fmt.Println(err)
		return
	}
	go sayYes(ctx, server)
	ask()
	fmt.Println(errors.Join(client.Close(), server.Shutdown(ctx)))
	// Output:
	// yes <nil>
	// <nil>
	// yes <nil>
	// <nil>
}

// sayYes answers each request, until the server has been shut down.
func sayYes(ctx context.Context, server *rpc.Server) {
	if err := server.Serve(ctx, 4, func(*rpc.Request) ([]byte, error) { return []byte("yes"), nil }); err != nil {
		fmt.Println(err)
	}
}
