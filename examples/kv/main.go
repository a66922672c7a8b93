// Command kv is a key-value store. Short values travel in messages; the server reads
// and writes longer ones by RDMA, straight from and to the client's memory.
//
//	kv -listen 127.0.0.1:7000          a server, until it is interrupted
//	kv -addr 127.0.0.1:7000 put k v    a client
//	kv -addr 127.0.0.1:7000 get k
//	kv                                 both, inside one process
//
// It is the program to learn from: main.go has the protocol, server.go the server's
// one select, client.go the client.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	dat "godat/runtime"
)

// A request is an operation, the length of the key, the key, and the value or where
// it is: a put's value itself if it is short, else the client's memory, which for a
// get is where a long value goes. An answer is a status, and a short value or the
// length of a long one in four bytes.
const (
	opPut     = 'p' // with the value
	opPutLong = 'P' // with the client's memory that has it
	opGet     = 'g' // with the client's memory for a long one
)

const (
	statusOK      = 0
	statusLong    = 1 // the value was written to the client's memory
	statusMissing = 2
	statusBusy    = 3 // the server has no memory left to move the value through
	statusBad     = 4
)

const (
	short    = 512     // bytes of the longest value that a message carries
	longest  = 1 << 20 // bytes of the longest value
	maxKey   = 255
	depth    = 16
	messages = 2 + maxKey + short
)

func main() {
	provider := flag.String("provider", "iwarp", "provider and device to run on")
	listen := flag.String("listen", "", "serve on this `address`")
	addr := flag.String("addr", "", "the server's `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *provider, *listen, *addr, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kv:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, provider, listen, addr string, args []string, out io.Writer) error {
	if listen == "" && addr == "" {
		provider = "loop"
	}
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return err
	}
	switch {
	case listen != "":
		err = serve(ctx, ia, listen, nil)
	case addr != "":
		err = ask(ctx, ia, addr, args, out)
	default:
		err = demonstrate(ctx, ia, out)
	}
	return errors.Join(err, ia.Close())
}

// demonstrate is a server and a client.
func demonstrate(ctx context.Context, ia *dat.IA, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	ready, done := make(chan string), make(chan error, 1)
	go serveTo(ctx, ia, "", ready, done)
	select {
	case addr := <-ready:
		err := ask(ctx, ia, addr, []string{"put", "greeting", "hello"}, out)
		if err == nil {
			err = ask(ctx, ia, addr, []string{"get", "greeting"}, out)
		}
		stop()
		return errors.Join(err, <-done)
	case err := <-done:
		stop()
		return err
	}
}
