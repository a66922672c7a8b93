package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	dat "godat/runtime"
	"godat/runtime/stream"
)

func Example() {
	err := serve(context.Background())
	fmt.Println("the listener was closed:", errors.Is(err, net.ErrClosed))
	// Output:
	// hello over iwarp
	// the listener was closed: true
}

// serve is a server of HTTP over iwarp, and all that it takes.
func serve(ctx context.Context) error {
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
	if err != nil {
		return err
	}
	defer ia.Close()
	ln, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
	if err != nil {
		return err
	}
	go get(ia, ln)
	return http.Serve(ln, http.HandlerFunc(hello))
}

// hello is the server's handler.
func hello(w http.ResponseWriter, r *http.Request) {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	fmt.Fprintln(w, "hello over", addr.Network())
}

// get is a client. It prints the answer to its request, and closes the listener.
func get(ia *dat.IA, ln *stream.Listener) {
	defer ln.Close()
	client := http.Client{Transport: &http.Transport{DialContext: (&stream.Dialer{IA: ia}).DialContext}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Print(string(text))
	if err != nil {
		fmt.Println(err)
	}
}
