package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	dat "godat/runtime"
	"godat/runtime/inspect"
)

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
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/debug/godat/?show=dispatchers", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
