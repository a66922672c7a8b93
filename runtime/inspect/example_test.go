package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"

	"godat/ep"
	dat "godat/runtime"
	"godat/runtime/inspect"
)

// visit is what a visitor of a handler does, and the answer's status.
func visit(h http.Handler, method, query string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/debug/godat/"+query, nil))
	return w.Code
}

// The page of an adapter, beside those of net/http/pprof on an address that only operators
// reach.
func Example() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/godat/", inspect.New(ia))
	// A program serves mux: http.ListenAndServe("127.0.0.1:6060", mux)
	fmt.Println(visit(mux, http.MethodGet, "?show=dispatchers"))
	// Output: 200
}

// A visitor presses a button of the list "latencies", and requests are measured for a minute.
func ExampleHandler_LetMeasure() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	h := inspect.New(ia).LetMeasure()
	visit(h, http.MethodPost, "?show=latencies&measure=60")
	fmt.Println(ia.MeasuresLatency())
	visit(h, http.MethodPost, "?show=latencies&measure=0") // the button that ends it
	fmt.Println(ia.MeasuresLatency())
	// Output:
	// true
	// false
}

// A visitor presses a button of a connection's story, and the connection leaves a file for
// Wireshark.
func ExampleHandler_AllowTraces() {
	err := func() (err error) {
		ctx := context.Background()
		ia, err := dat.Open(ctx, "iwarp:127.0.0.1")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ia.Close()) }()
		ln, err := ia.Listen(ctx, "", dat.ConnConfig{Depth: 4})
		if err != nil {
			return err
		}
		conn, err := ln.Dial(ln.Addr(), nil)
		if err != nil {
			return err
		}
		if _, err = ln.Accept(ep.RequestOf(<-ln.Requests()), nil); err != nil {
			return err
		}
		<-ln.Events() // both ends are up
		<-ln.Events()

		dir, err := os.MkdirTemp("", "traces")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		h := inspect.New(ia)
		if err = h.AllowTraces(dir); err != nil {
			return err
		}
		of := "?of=" + url.QueryEscape(conn.String())
		visit(h, http.MethodPost, of+"&trace=start")
		visit(h, http.MethodPost, of+"&trace=stop") // or it ends by itself, after 30 seconds
		files, err := filepath.Glob(filepath.Join(dir, "*.pcapng"))
		fmt.Println(len(files), "file")
		return err
	}()
	fmt.Println(err)
	// Output:
	// 1 file
	// <nil>
}

// A page on a loopback address, which a proxy shows to operators by another name.
func ExampleHandler_AllowHosts() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	h := inspect.New(ia).AllowHosts("ops.example")
	for _, host := range []string{"ops.example", "elsewhere.example"} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/debug/godat/", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(host, w.Code)
	}
	// Output:
	// ops.example 200
	// elsewhere.example 403
}
