// Command end is one end of a connection, for tests that let two versions of the library meet.
//
//	end serve          prints the addresses of a server of calls and of a listener of streams
//	end rpc ADDRESS    makes calls
//	end stream ADDRESS writes a stream, and reads it back
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(what string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
	if err != nil {
		return err
	}
	defer ia.Close()
	switch what {
	case "serve":
		return serve(ctx, ia)
	case "rpc":
		return calls(ctx, ia, args[0])
	}
	return echoed(ctx, ia, args[0])
}

// serve serves until its input ends.
func serve(ctx context.Context, ia *dat.IA) error {
	s, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{})
	if err != nil {
		return err
	}
	ln, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
	if err != nil {
		return err
	}
	go s.Serve(ctx, 4, handle)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	fmt.Println(s.Addr(), ln.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

const (
	same    = 1 // the payload
	memory  = 2 // the source's bytes in the sink
	tenant  = 3 // the metadata
	refuses = 4
	long    = 5 // a value of unknown length
)

var errRefused = &rpc.Error{Code: rpc.CodeUser + 7, Text: "refused"}

func handle(r *rpc.Request) ([]byte, error) {
	switch r.Method() {
	case same:
		return r.Payload(), nil
	case memory:
		b, err := r.ReadAll()
		if err == nil {
			err = r.WriteBytes(b, 0)
		}
		return nil, err
	case tenant:
		return []byte(r.Metadata()["tenant"]), nil
	case long:
		return rpc.HandleJSON(func(*rpc.Request, int) (string, error) { return string(make([]byte, 100_000)), nil })(r)
	}
	return nil, errRefused
}

func calls(ctx context.Context, ia *dat.IA, address string) error {
	c, err := rpc.Dial(ctx, ia, address, rpc.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	for range 1000 {
		got, err := c.Call(ctx, rpc.Call{Method: same, Payload: []byte("hello")}, nil)
		if err != nil || string(got) != "hello" {
			return fmt.Errorf("a call: %q %w", got, err)
		}
	}
	source, sink := bytes.Repeat([]byte("0123456789abcdef"), 1<<16), make([]byte, 1<<20)
	if _, err := c.Call(ctx, rpc.Call{Method: memory, SourceBytes: source, SinkBytes: sink}, nil); err != nil || !bytes.Equal(source, sink) {
		return fmt.Errorf("a call with memory: %w", err)
	}
	got, err := c.Call(rpc.WithMetadata(ctx, rpc.Metadata{"tenant": "blue"}), rpc.Call{Method: tenant}, nil)
	if err != nil || string(got) != "blue" {
		return fmt.Errorf("a call with metadata: %q %w", got, err)
	}
	if _, err := c.Call(ctx, rpc.Call{Method: refuses}, nil); !errors.Is(err, errRefused) {
		return fmt.Errorf("a call that is refused: %w", err)
	}
	var value string
	if err := c.CallJSON(ctx, rpc.Call{Method: long}, 1, &value); err != nil || len(value) != 100_000 {
		return fmt.Errorf("a call with a long answer: %d %w", len(value), err)
	}
	return nil
}

func echoed(ctx context.Context, ia *dat.IA, address string) error {
	of, err := (&stream.Dialer{IA: ia}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer of.Close()
	c := of.(interface {
		net.Conn
		CloseWrite() error
	})
	for _, size := range []int{1, 100, 5000, 4 << 20} {
		sent, got := bytes.Repeat([]byte{byte(size)}, size), make([]byte, size)
		written := make(chan error, 1)
		go func() {
			_, err := c.Write(sent)
			written <- err
		}()
		if _, err := io.ReadFull(c, got); err != nil {
			return fmt.Errorf("a stream of %d bytes: %w", size, err)
		}
		if err := <-written; err != nil || !bytes.Equal(sent, got) {
			return fmt.Errorf("a stream of %d bytes: other bytes came back: %w", size, err)
		}
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("the end of a stream: %d %w", n, err)
	}
	return nil
}
