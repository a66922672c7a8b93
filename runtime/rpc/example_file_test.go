package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// A server keeps what its clients put in a file, and serves parts of the file. The program needs no
// buffer for either.
func ExampleRequest_WriteFile() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ia, err := dat.Open(ctx, "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	f, err := os.CreateTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	server, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, 4, rpc.HandleJSON(filed{f}.move)) }()
	client, err := rpc.Dial(ctx, ia, server.Addr(), rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var moved int
	err = client.CallJSON(ctx, rpc.Call{Method: putPart, SourceBytes: []byte("in a file")}, 1000, &moved)
	fmt.Println(moved, err)
	got := make([]byte, 100)
	err = client.CallJSON(ctx, rpc.Call{Method: getPart, SinkBytes: got}, 1005, &moved)
	fmt.Printf("%q %v\n", got[:moved], err)
	stop()
	fmt.Println(errors.Join(client.Close(), <-served, f.Close(), os.Remove(f.Name())))
	// Output:
	// 9 <nil>
	// "file" <nil>
	// <nil>
}

const (
	putPart = 1
	getPart = 2
)

// filed is a file.
type filed struct{ *os.File }

// move moves a part of the file from or to its caller, and answers how long the part is.
func (f filed) move(r *rpc.Request, offset int64) (n int, err error) {
	if r.Method() == putPart && r.SourceLen() <= 1<<20 && offset <= 1<<20 {
		return r.ReadFile(f.File, offset)
	}
	return r.WriteFile(f.File, offset)
}
