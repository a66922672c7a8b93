package consumer

import (
	"context"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"

	dat "godat/runtime"
	"godat/runtime/inspect/prometheus"
)

func TestPrometheus(t *testing.T) {
	ia, err := dat.Open(context.Background(), "loop")
	check(t, err)
	defer func() { check(t, ia.Close()) }()
	registry := client.NewRegistry()
	check(t, registry.Register(prometheus.New(ia)))
	families, err := registry.Gather()
	check(t, err)
	if len(families) == 0 {
		t.Error("no metrics")
	}
}
