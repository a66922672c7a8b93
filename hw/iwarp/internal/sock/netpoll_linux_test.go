package sock

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// polling runs n consumers that poll and yield, until the test has ended or stop is
// called. It counts their polls in polls.
func polling(t *testing.T, p *Poller, n int, polls *atomic.Int64) (stop func()) {
	var stopped atomic.Bool
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			for !stopped.Load() {
				p.Progress()
				polls.Add(1)
				runtime.Gosched()
			}
		})
	}
	stop = func() {
		stopped.Store(true)
		done.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// Without the look at the network each message would wait for the runtime's monitor,
// which polls the network every 10 ms: consumers poll thousands of times meanwhile.
func TestConsumersThatPollLeaveOtherSocketsAlone(t *testing.T) {
	for _, procs := range []int{1, 2} {
		var p Poller
		a, b := sides(t)
		old := runtime.GOMAXPROCS(procs)
		var polls atomic.Int64
		stop := polling(t, &p, procs, &polls)
		var perOctet []int64
		for range 21 {
			before := polls.Load()
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
			perOctet = append(perOctet, polls.Load()-before)
		}
		stop()
		p.Close()
		runtime.GOMAXPROCS(old)
		slices.Sort(perOctet)
		assert.Less(t, perOctet[len(perOctet)/2], int64(1000), "%d processors: %v", procs, perOctet)
	}
}

func TestProgressAfterCloseDoesNothing(t *testing.T) {
	p := begun(t)
	p.Close()
	for range 3 * netpollEvery {
		p.Progress()
	}
}

func TestAPollerClosesBesideConsumersThatPoll(t *testing.T) {
	for range 50 {
		var p Poller
		stop := polling(t, &p, 3, new(atomic.Int64))
		for range 10 {
			runtime.Gosched()
		}
		p.Close()
		stop()
	}
}

func TestTheLastPollerClosesTheEventfd(t *testing.T) {
	users := func() int {
		network.mu.Lock()
		defer network.mu.Unlock()
		assert.Equal(t, network.users > 0, network.file != nil)
		return network.users
	}
	for range 2 {
		first, last := begun(t), begun(t)
		assert.Equal(t, 2, users())
		first.Close()
		assert.Equal(t, 1, users())
		last.Close()
		assert.Zero(t, users())
	}
}

// A goroutine that has written its share waits for a consumer that is parked until the
// scheduler polls the network, unless a wait was slow a short while ago.
func TestAPauseWaitsForAParkedConsumer(t *testing.T) {
	network.mu.Lock()
	network.parked.Store(true)
	p := Pause{passed: 1}
	p.Now()
	var moved atomic.Bool
	late := make(chan bool)
	go func() {
		p.Now()
		late <- moved.Load()
	}()
	for range 100 {
		runtime.Gosched()
	}
	moved.Store(true)
	network.parked.Store(false)
	network.mu.Unlock()
	assert.True(t, <-late)
}
