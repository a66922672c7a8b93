package stream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dat "godat/runtime"
	"godat/runtime/stream"
)

// An HTTP server over iwarp, and a client.
func Example() {
	ctx := context.Background()
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	ln, err := stream.Listen(ctx, ia, "127.0.0.1:0", stream.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s over %s\n", r.Method, r.URL.Path, ln.Addr().Network())
	})}
	defer server.Close()
	go func() { _ = server.Serve(ln) }()

	client := http.Client{Transport: &http.Transport{DialContext: (&stream.Dialer{IA: ia}).DialContext}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + ln.Addr().String() + "/hello")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Print(string(text))
	fmt.Println(err)
	// Output:
	// GET /hello over iwarp
	// <nil>
}
