// Command streamecho sends back the bytes of each stream until it ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	dat "godat/runtime"
	"godat/runtime/stream"
)

func main() {
	provider := flag.String("provider", "iwarp:127.0.0.1", "provider and device to run on")
	listen := flag.String("listen", "127.0.0.1:0", "serve on this `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve(ctx, *provider, *listen, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "streamecho:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, provider, address string, out io.Writer) error {
	ia, err := dat.Open(ctx, provider)
	if err != nil {
		return err
	}
	ln, err := stream.Listen(ctx, ia, address, stream.Config{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ln.Addr())
	context.AfterFunc(ctx, func() { _ = ln.Close() })
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil {
			return ia.Close()
		}
		if err != nil {
			return err
		}
		go echo(c)
	}
}

// echo ends with the stream. A peer that has gone is no error.
func echo(c net.Conn) {
	_, _ = io.Copy(c, c)
	_ = c.Close()
}
