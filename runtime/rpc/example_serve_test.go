package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// A server of values of any size, until its context ends. A program's context is that of
// signal.NotifyContext with SIGTERM.
func ExampleServer_Serve() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
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
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, 8, new(values).handle) }()
	if err := putAndGet(ctx, ia, server.Addr()); err != nil {
		fmt.Println(err)
	}

	stop()                // as SIGTERM does
	fmt.Println(<-served) // nil: all requests were answered
	// Output:
	// 100000 bytes, the last a z
	// <nil>
}

const (
	putValue = 1 // the payload is the key, the source is the value
	getValue = 2 // the payload is the key, the sink takes the value
)

// values is a store. Nobody changes a value that is in it.
type values struct{ sync.Map }

func (v *values) handle(r *rpc.Request) ([]byte, error) {
	key := string(r.Payload())
	switch value, found := v.Load(key); {
	case r.Method() == putValue && r.SourceLen() <= 1<<20:
		value, err := r.ReadAll()
		if err != nil {
			return nil, err
		}
		v.Store(key, value)
		return nil, nil
	case r.Method() == getValue && found:
		return nil, r.WriteBytes(value.([]byte), 0)
	case r.Method() == getValue:
		return nil, errors.New("no such key")
	}
	return nil, errors.New("neither a value of up to 1 MiB nor a get")
}

func putAndGet(ctx context.Context, ia *dat.IA, address string) error {
	client, err := rpc.Dial(ctx, ia, address, rpc.Config{})
	if err != nil {
		return err
	}
	value, got := make([]byte, 100_000), make([]byte, 100_000)
	value[99_999] = 'z'
	_, err = client.Call(ctx, rpc.Call{Method: putValue, Payload: []byte("k"), SourceBytes: value}, nil)
	if err == nil {
		_, err = client.Call(ctx, rpc.Call{Method: getValue, Payload: []byte("k"), SinkBytes: got}, nil)
	}
	if err == nil {
		fmt.Printf("%d bytes, the last a %c\n", len(got), got[99_999])
	}
	return errors.Join(err, client.Close())
}
