package rpc_test

import (
	"context"
	"errors"
	"fmt"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

type order struct {
	Item  string
	Count int
}

// price is a handler of values.
func price(_ *rpc.Request, o order) (cents int, err error) {
	if o.Item != "pear" {
		return 0, errors.New("no such item")
	}
	return 35 * o.Count, nil
}

// A server of values, at an address that is known before, and a client that may start first.
func ExampleHandleJSON() {
	const address = ":7001" // as on each device
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	served := make(chan error, 1)
	go func() { served <- rpc.ListenAndServe(ctx, ia, address, rpc.Config{}, 8, rpc.HandleJSON(price)) }()

	client, err := rpc.Dial(ctx, ia, address, rpc.Config{Await: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range []order{{"pear", 3}, {"fig", 1}} {
		var cents int
		err := client.CallJSON(ctx, rpc.Call{}, o, &cents)
		fmt.Println(o, cents, err)
	}
	fmt.Println(client.Close())
	stop()
	fmt.Println(<-served)
	// Output:
	// {pear 3} 105 <nil>
	// {fig 1} 0 rpc: no such item (CodeFailed)
	// <nil>
	// <nil>
}
