package iwarp

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// polling runs n consumers that poll and yield, until the test has ended or stop is
// called.
func polling(t *testing.T, dev hw.Device, n int) (stop func()) {
	var stopped atomic.Bool
	done := make(chan struct{})
	for range n {
		go func() {
			for !stopped.Load() {
				dev.(hw.Progresser).Progress()
				runtime.Gosched()
			}
			done <- struct{}{}
		}()
	}
	stop = func() {
		if !stopped.Swap(true) {
			for range n {
				<-done
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// Without the look at the network each message would wait for the runtime's monitor,
// which polls the network every 10 ms.
func TestConsumersThatPollLeaveOtherSocketsAlone(t *testing.T) {
	for _, procs := range []int{1, 2} {
		n := newNode(t, New(Config{}), nil)
		a, b := tcpPair(t)
		old := runtime.GOMAXPROCS(procs)
		stop := polling(t, n.dev, procs)
		var times []time.Duration
		for range 21 {
			start := time.Now()
			done := make(chan error, 1)
			go func() {
				var octet [1]byte
				_, err := b.Read(octet[:])
				done <- err
			}()
			runtime.Gosched() // b.Read waits in the network poller
			_, err := a.Write([]byte("x"))
			require.NoError(t, err)
			require.NoError(t, <-done)
			times = append(times, time.Since(start))
		}
		stop()
		runtime.GOMAXPROCS(old)
		slices.Sort(times)
		assert.Less(t, times[len(times)/2], 5*time.Millisecond, "%d processors: %v", procs, times)
	}
}

func TestProgressAfterCloseDoesNothing(t *testing.T) {
	dev, err := New(Config{}).Open(hw.OpenConfig{Device: "127.0.0.1"})
	require.NoError(t, err)
	for range 3 * netpollEvery {
		dev.(hw.Progresser).Progress()
	}
	require.NoError(t, dev.Close())
	for range 3 * netpollEvery {
		dev.(hw.Progresser).Progress()
	}
}

func TestADeviceClosesBesideConsumersThatPoll(t *testing.T) {
	for range 50 {
		dev, err := New(Config{}).Open(hw.OpenConfig{Device: "127.0.0.1"})
		require.NoError(t, err)
		stop := polling(t, dev, 3)
		for range 10 {
			runtime.Gosched()
		}
		require.NoError(t, dev.Close())
		stop()
	}
}
