package rpc_test

import (
	"context"
	"errors"
	"fmt"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// traceID is the key of a trace id in a program's contexts.
type traceID struct{}

// traced sends the trace id of the caller's context with each call.
func traced(ctx context.Context, call rpc.Call, next rpc.CallFunc) ([]byte, error) {
	if id, ok := ctx.Value(traceID{}).(string); ok {
		ctx = rpc.WithMetadata(ctx, rpc.Metadata{"trace": id})
	}
	return next(ctx, call)
}

// tracing gives the trace id to the handler's context, from which its own calls have it, and says what
// came of the request.
func tracing(r *rpc.Request, next rpc.Handler) ([]byte, error) {
	id := r.Metadata()["trace"]
	r.SetContext(context.WithValue(r.Context(), traceID{}, id))
	answer, err := next(r)
	fmt.Printf("trace %s: method %d, %v\n", id, r.Method(), err)
	return answer, err
}

// A trace id goes with a call through both ends, and no caller or handler knows of it.
func Example_metadata() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	server, err := rpc.Listen(ctx, ia, "", rpc.Config{AroundHandler: tracing})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, 8, func(r *rpc.Request) ([]byte, error) {
			if r.Method() == 2 {
				return nil, errors.New("no such method")
			}
			return append([]byte("hello, "), r.Payload()...), nil
		})
	}()
	client, err := rpc.Dial(ctx, ia, server.Addr(), rpc.Config{AroundCall: traced})
	if err != nil {
		fmt.Println(err)
		return
	}
	for method := range uint16(2) {
		answer, err := client.Call(context.WithValue(ctx, traceID{}, "4bf92f"), rpc.Call{Method: method + 1, Payload: []byte("world")}, nil)
		fmt.Printf("%s %v\n", answer, err)
	}
	fmt.Println(client.Close())
	stop()
	fmt.Println(<-served)
	// Output:
	// trace 4bf92f: method 1, <nil>
	// hello, world <nil>
	// trace 4bf92f: method 2, no such method
	//  rpc: no such method (CodeFailed)
	// <nil>
	// <nil>
}
