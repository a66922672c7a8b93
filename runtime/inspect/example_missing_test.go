package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	dat "godat/runtime"
	"godat/runtime/inspect"
)

// store is a row of a program's report: a store that this program asks. Nothing may come from there.
type store struct {
	Address string
	Unheard bool
}

// Trouble says what is wrong with the row.
func (s store) Trouble(time.Duration) string {
	if s.Unheard {
		return "nothing is heard of it"
	}
	return ""
}

// Misses says that the trouble is somebody's absence: a line that says why nothing comes from there stands before it.
func (s store) Misses() string { return s.Address }

func ExampleMissing() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	if _, err = ia.Report("stores", func() []any { return []any{store{"10.0.0.7:4420", true}} }); err != nil {
		fmt.Println(err)
		return
	}
	w := httptest.NewRecorder()
	inspect.New(ia).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/?format=json", nil))
	var page struct{ Troubles []struct{ Head, Text string } }
	if err = json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range page.Troubles {
		fmt.Println(t.Head + ": " + t.Text)
	}
	// Output: store 10.0.0.7:4420: nothing is heard of it
}
