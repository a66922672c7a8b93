package prometheus_test

import (
	"context"
	"fmt"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	dat "godat/runtime"
	"godat/runtime/inspect/prometheus"
)

// The numbers of an adapter for Prometheus. A program serves them by promhttp.HandlerFor.
func Example() {
	ia, err := dat.Open(context.Background(), "loop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	registry := client.NewRegistry()
	registry.MustRegister(prometheus.New(ia))
	err = testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP godat_up Whether the adapter is open.
# TYPE godat_up gauge
godat_up{adapter="loop"} 1
`), "godat_up")
	fmt.Println(err)
	// Output: <nil>
}
