package inspect

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNumbersInNamesSortAsNumbers(t *testing.T) {
	sorted := []string{"", "Conn(10.0.0.2:7)", "Conn(10.0.0.10:7)", "Endpoint(2)", "Endpoint(10)", "Endpoint(10)a", "Endpoint(x)", "b", "b07", "b8", "b18446744073709551616"}
	for seed := range len(sorted) {
		list := append(slices.Clone(sorted[seed:]), sorted[:seed]...)
		slices.SortFunc(list, natural)
		assert.Equal(t, sorted, list)
	}
}

func TestWhatEndsBesideASnapshotIsNotOfTheFuture(t *testing.T) {
	assert.Equal(t, "0 ns", ago(-time.Millisecond))
}
