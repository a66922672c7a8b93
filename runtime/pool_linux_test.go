package runtime

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On the only processor, a Close that spins until another goroutine has ended keeps that
// goroutine from running, for 10 ms each time.
func TestCloseDoesNotSpinOnTheOnlyProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds = 20
	var took []time.Duration
	for range rounds {
		began := processorTime(t)
		ia, err := Open(context.Background(), "loop")
		require.NoError(t, err)
		ran := make(chan struct{})
		require.NoError(t, ia.pool.upcall(func() { close(ran) })) // with which ants' goroutines begin
		<-ran
		require.NoError(t, ia.Close())
		took = append(took, processorTime(t)-began)
	}
	slices.Sort(took)
	assert.Less(t, took[rounds/2], 5*time.Millisecond) // others may meet a collection of garbage
}
