package stream

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// watchedPair is a connection whose client's Reads wait in the socket.
func watchedPair(t *testing.T) (client, server *Conn) {
	t.Helper()
	client, server = newRig(t, "iwarp:127.0.0.1", Config{}).pair()
	if client.line.reader.ready == nil {
		t.Skip("capability: reads of the socket without the receiver")
	}
	for i, parked := 0, false; i < 1000 && !parked; i++ {
		read := readOne(client)
		require.Eventually(t, func() bool {
			parked = client.line.reader.parked.Load()
			return parked || client.line.reader.announced()
		}, time.Minute, 10*time.Microsecond)
		_, err := server.Write([]byte{1})
		require.NoError(t, err)
		require.NoError(t, <-read)
	}
	return client, server
}

// readOne reads a byte.
func readOne(c *Conn) (read <-chan error) {
	return write(func() error {
		_, err := c.Read(make([]byte, 1))
		return err
	})
}

// Several processors: with one, calls that wait yield to each other.
func TestAReadWaitsInTheSocket(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	for name, c := range map[string]struct {
		happen func(t *testing.T, client, server *Conn)
		want   error
	}{
		"bytes": {func(t *testing.T, _, server *Conn) {
			_, err := server.Write([]byte{1})
			require.NoError(t, err)
		}, nil},
		"a deadline that passes": {func(t *testing.T, client, _ *Conn) {
			require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Millisecond)))
		}, os.ErrDeadlineExceeded},
		"a deadline that has passed": {func(t *testing.T, client, _ *Conn) {
			require.NoError(t, client.SetReadDeadline(time.Unix(1, 0)))
		}, os.ErrDeadlineExceeded},
		"a Close": {func(t *testing.T, client, _ *Conn) { require.NoError(t, client.Close()) }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := watchedPair(t)
			for range 3 { // also behind an end that leaves the connection up
				read := readOne(client)
				require.Eventually(t, client.line.reader.parked.Load, time.Minute, 10*time.Microsecond)
				c.happen(t, client, server)
				require.ErrorIs(t, <-read, c.want)
				if client.line.closed.Load() {
					return
				}
				require.NoError(t, client.SetReadDeadline(time.Time{}))
			}
		})
	}
}

// disturbed is a watcher that counts how often it was disturbed.
type disturbed struct {
	hw.Watcher
	times int
}

func (d *disturbed) Disturb() { d.times++ }

// The call has slept before, and waits in the watcher now. A notify may still find that it
// sleeps: the call withdraws that without a locked instruction.
func TestANotifyThatFindsACallAsleepDisturbsTheWatcherToo(t *testing.T) {
	for _, waiting := range []uint32{0, 1} {
		w, d := newWaiter(), &disturbed{}
		w.watcher = d
		w.waiting.Store(waiting)
		w.parked.Store(true)
		require.Equal(t, waiting != 0, w.notify(), "whether it has sent")
		require.Equal(t, 1, d.times)
		require.Len(t, w.wake, int(waiting))
	}
}

// leaving is a watcher that a call has left, and now sleeps elsewhere.
type leaving struct {
	hw.Watcher
	disturb func()
}

func (l *leaving) Disturb() { l.disturb() }

// A notify sees that a call waits in the watcher. That call is there no more: it begins to sleep
// before notify has disturbed the watcher, and does not see the bytes yet.
func TestACallThatSleepsWhileItsOldWatcherIsDisturbedIsWoken(t *testing.T) {
	c := bareConn(leastRing)
	w := &c.line.reader
	w.wake = make(chan struct{}, 1)
	w.watcher = &leaving{disturb: func() { w.waiting.Store(1) }}
	w.parked.Store(true)
	copy(c.line.flow.in.slots, encode(message{produced: 1, granted: messages}, "b"))
	c.line.arrive(0)
	assert.Len(t, w.wake, 1)
}

// found is a watcher whose socket has what the call waits for when the call is about to sleep.
type found struct{ hw.Watcher }

func (found) Watch(look func(parks bool) bool) bool { return look(true) }

// Otherwise each message would disturb a watcher that is not there.
func TestAWatchThatHasEndedLeavesNobodyInTheSocket(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	w := newWaiter()
	w.watcher, w.ready = found{}, func() bool { return true }
	w.lookFn = w.look
	require.True(t, w.watch())
	assert.False(t, w.parked.Load())
}

// sleepers is a watcher that counts who sleeps elsewhere.
type sleepers struct {
	hw.Watcher
	asleep int
}

func (s *sleepers) Need(sleeps bool) {
	if sleeps {
		s.asleep++
	} else {
		s.asleep--
	}
}

// Otherwise nobody reads the socket meanwhile, and what the call waits for comes when the
// receiver's goroutine looks by itself.
func TestACallThatSleepsElsewhereNeedsTheSocketUntilItHasSlept(t *testing.T) {
	w, s := newWaiter(), &sleepers{}
	w.watcher = s
	w.sleep(func() bool {
		assert.Equal(t, 1, s.asleep)
		return true
	})
	assert.Zero(t, s.asleep)
}
