package iwarp

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// polling runs n consumers that poll and yield, until the test has ended or stop is
// called. It counts their polls in polls.
func polling(t *testing.T, dev hw.Device, n int, polls *atomic.Int64) (stop func()) {
	var stopped atomic.Bool
	done := make(chan struct{})
	for range n {
		go func() {
			for !stopped.Load() {
				dev.(hw.Progresser).Progress()
				polls.Add(1)
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
// which polls the network every 10 ms: consumers poll thousands of times meanwhile.
func TestConsumersThatPollLeaveOtherSocketsAlone(t *testing.T) {
	for _, procs := range []int{1, 2} {
		n := newNode(t, New(Config{}), nil)
		a, b := tcpPair(t)
		old := runtime.GOMAXPROCS(procs)
		var polls atomic.Int64
		stop := polling(t, n.dev, procs, &polls)
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
		runtime.GOMAXPROCS(old)
		slices.Sort(perOctet)
		assert.Less(t, perOctet[len(perOctet)/2], int64(1000), "%d processors: %v", procs, perOctet)
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
		stop := polling(t, dev, 3, new(atomic.Int64))
		for range 10 {
			runtime.Gosched()
		}
		require.NoError(t, dev.Close())
		stop()
	}
}

func TestTheLastDeviceClosesTheEventfd(t *testing.T) {
	open := func() hw.Device {
		dev, err := New(Config{}).Open(hw.OpenConfig{Device: "127.0.0.1"})
		require.NoError(t, err)
		for range netpollEvery {
			dev.(hw.Progresser).Progress()
		}
		return dev
	}
	users := func() int {
		network.mu.Lock()
		defer network.mu.Unlock()
		assert.Equal(t, network.users > 0, network.file != nil)
		return network.users
	}
	before := users()
	for range 2 {
		first, last := open(), open()
		assert.Equal(t, before+2, users())
		require.NoError(t, first.Close())
		assert.Equal(t, before+1, users())
		require.NoError(t, last.Close())
		assert.Equal(t, before, users())
	}
}

// A writer that has written its share waits for a consumer that is parked until the
// scheduler polls the network, unless a wait was slow a short while ago.
func TestAWriterThatPausesWaitsForAParkedConsumer(t *testing.T) {
	w := &connections(newNode(t, New(Config{}), nil).peer())[0].send.writer
	network.mu.Lock()
	network.parked.Store(true)
	w.own.Acquire()
	w.passed = 1
	w.pause()
	w.own.Release()
	var moved atomic.Bool
	late := make(chan bool)
	go func() {
		w.own.Acquire()
		defer w.own.Release()
		w.pause()
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
