package runtime

import (
	"context"
	"runtime"
	"syscall"
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
	began := processorTime(t)
	for range rounds {
		ia, err := Open(context.Background(), "loop")
		require.NoError(t, err)
		ran := make(chan struct{})
		require.NoError(t, ia.pool.upcall(func() { close(ran) })) // with which ants' goroutines begin
		<-ran
		require.NoError(t, ia.Close())
	}
	assert.Less(t, processorTime(t)-began, rounds*5*time.Millisecond)
}

// processorTime returns the time that the process has spent on processors.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
