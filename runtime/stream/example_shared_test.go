package stream_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"godat/runtime/stream"
)

// A program that opens no adapter: the listener and both ends share one of iwarp, which is
// closed with the last of them.
func Example_withoutAnAdapter() {
	ctx := context.Background()
	ln, err := stream.Listen(ctx, nil, "127.0.0.1:0", stream.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ln.Close()
	go greet(ln)
	conn, err := new(stream.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	fmt.Println(string(text), err)
	// Output:
	// hello <nil>
}

// greet greets a peer, and hangs up.
func greet(ln *stream.Listener) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello")
}

// The parts of a message go in one write, and nobody puts them together before.
func ExampleConn_WriteBuffers() {
	ctx := context.Background()
	ln, err := stream.Listen(ctx, nil, "127.0.0.1:0", stream.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ln.Close()
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		parts := net.Buffers{[]byte("a head, "), []byte("and what is behind it")}
		_, _ = conn.(*stream.Conn).WriteBuffers(&parts)
	}()
	conn, err := new(stream.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	fmt.Println(string(text), err)
	// Output:
	// a head, and what is behind it <nil>
}
