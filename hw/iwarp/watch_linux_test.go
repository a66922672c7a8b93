package iwarp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp/internal/sock"
)

// onlooker is a goroutine that waits for messages, as a Read of a stream does.
type onlooker struct {
	hw.Watcher
	p      *peer
	parks  atomic.Bool
	enough atomic.Int64 // messages
	over   atomic.Bool
}

func (o *onlooker) look(parks bool) bool {
	o.parks.Store(parks)
	return o.over.Load() || int64(o.p.completed()) >= o.enough.Load()
}

// watching is a connection whose sockets go to the first goroutine that watches. The
// receiver's goroutine looks every tick at a socket that watchers have.
func watching(t *testing.T, tick time.Duration, params map[string]string) (a, b *peer, o *onlooker) {
	t.Helper()
	a, b = pair(t, params)
	b.awaitUp()
	w := &connections(b)[0].recv.right
	require.Eventually(t, func() bool { return w.Waits(sock.Receiver) }, patience, time.Millisecond)
	w.Tick, w.Patience = tick, 0
	for range 64 {
		b.recv()
	}
	o = &onlooker{Watcher: b.qp.(hw.Watchable).Watcher(), p: b}
	return a, b, o
}

// watch watches until so many messages have come.
func (o *onlooker) watch(messages int64) (done chan bool) {
	o.enough.Store(messages)
	done = make(chan bool, 1)
	go func() { done <- o.Watch(o.look) }()
	return done
}

func (o *onlooker) awaitParked(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); !o.parks.Load(); runtime.Gosched() {
		require.Less(t, time.Now(), deadline)
	}
}

// waits reports whether one of a set waits in a peer's socket.
func waits(p *peer, set sock.Waiter) bool { return connections(p)[0].recv.right.Waits(set) }

const anybody = sock.Receiver | sock.Asked | sock.Watcher

func emptySend() hw.SendWR { return hw.SendWR{Op: hw.OpSend} }

func TestAWatcherReadsTheMessageThatItWaitsFor(t *testing.T) {
	a, b, o := watching(t, time.Hour, nil)
	for i := range int64(3) {
		done := o.watch(i + 1)
		o.awaitParked(t)
		assert.True(t, waits(b, sock.Watcher))
		a.post(emptySend())
		require.True(t, <-done)
		assert.EqualValues(t, i+1, b.completed())
		assert.False(t, waits(b, anybody), "the socket stays free for the next watcher")
	}
}

func TestTheReceiverTakesASocketBackThatStaysFree(t *testing.T) {
	a, b, o := watching(t, time.Millisecond, nil)
	done := o.watch(1)
	o.awaitParked(t)
	<-time.After(5 * tick) // the receiver sleeps without a limit
	a.post(emptySend())
	require.True(t, <-done)
	a.post(emptySend())
	b.received(1)
}

func TestAWatchIsRefusedWhereAnotherGoroutineWaits(t *testing.T) {
	a, b, o := watching(t, time.Hour, nil)
	done := o.watch(1)
	o.awaitParked(t)
	assert.False(t, o.Watch(o.look), "there is a watcher")
	o.Need(true)
	a.post(emptySend())
	require.True(t, <-done)
	a.post(emptySend())
	b.received(1)
	assert.True(t, waits(b, sock.Receiver))
	assert.False(t, o.Watch(o.look), "a goroutine sleeps in another way")
	o.Need(false)
}

func TestADisturbedWatchEndsAndTheConnectionGoesOn(t *testing.T) {
	a, b, o := watching(t, time.Hour, map[string]string{"keepalive": "0"})
	for range 3 {
		done := o.watch(1)
		o.awaitParked(t)
		o.Disturb()
		require.True(t, <-done)
	}
	o.Disturb() // nobody watches
	done := o.watch(1)
	o.awaitParked(t)
	a.post(emptySend())
	require.True(t, <-done)
	o.Need(true)
	a.post(emptySend())
	b.received(1)
	o.Need(false)
}

func TestAConnectionEndsWhereverItsSocketIs(t *testing.T) {
	for name, end := range map[string]func(a, b *peer){
		"broken here":    func(_, b *peer) { b.end(false) },
		"broken there":   func(a, b *peer) { a.end(false); b.awaitDown() },
		"drained there":  func(a, b *peer) { a.qp.Drain(); b.awaitDown() },
		"left in order":  func(a, b *peer) { a.end(true); b.awaitDown() },
		"drained by two": func(a, b *peer) { a.qp.Drain(); b.qp.Drain(); a.awaitDown(); b.awaitDown() },
	} {
		t.Run(name+", with a watcher", func(t *testing.T) {
			a, b, o := watching(t, time.Hour, nil)
			done := o.watch(1)
			o.awaitParked(t)
			end(a, b)
			assert.True(t, <-done)
		})
		t.Run(name+", without", func(t *testing.T) {
			a, b, o := watching(t, time.Millisecond, nil)
			done := o.watch(1)
			o.awaitParked(t)
			o.Disturb()
			require.True(t, <-done)
			end(a, b)
		})
	}
}

// No look of the receiver's goroutine helps here, and no warning that the peer has ended its half.
func TestAConnectionThatBreaksTakesAFreeSocketBack(t *testing.T) {
	_, b, o := watching(t, time.Hour, nil)
	done := o.watch(1)
	o.awaitParked(t)
	o.Disturb()
	require.True(t, <-done)
	b.dev.(*device).hangups.Remove(&connections(b)[0].recv.parties)
	b.end(false)
}

// The watcher reads the first part of a message, and nobody disturbs it any more.
func TestTheRestOfAnFPDUIsAwaitedForALimitedTimeByAWatcher(t *testing.T) {
	b := newNode(t, New(Config{}), stalling(20*time.Millisecond)).peer()
	b.recv()
	s, _ := accepted(t, b, plain())
	s.write(sendFPDU(1, 0))
	b.received(0)
	w := &connections(b)[0].recv.right
	w.Tick, w.Patience = time.Hour, 0
	o := &onlooker{Watcher: b.qp.(hw.Watchable).Watcher(), p: b}
	done := o.watch(2)
	o.awaitParked(t)
	o.Disturb()
	require.True(t, <-done)
	done = o.watch(2)
	s.write(sendFPDU(2, 0)[:8])
	b.awaitDown()
	require.True(t, <-done)
	assert.ErrorIs(t, b.cause, hw.ErrTimeout)
}

// The receiver's goroutine looks at a deadline that has passed before it lends the socket many
// times more, although the watcher comes back at once.
func TestADeadlineIsSeenBesideAWatcherThatComesBack(t *testing.T) {
	_, b, o := watching(t, time.Hour, map[string]string{"keepalive": "100ms"})
	l := &connections(b)[0].link
	deadline := func() time.Time {
		l.Mu.Lock()
		defer l.Mu.Unlock()
		return l.readAt
	}
	o.enough.Store(1)
	watches, looks := 0, 0
	for last := deadline(); looks < 5; watches++ {
		require.Less(t, watches, 10*(looks+1))
		o.Watch(o.look)
		if now := deadline(); now != last {
			last = now
			looks++
		}
	}
}

// Goroutines watch, sleep in another way and disturb each other while messages come. The
// receiver's goroutine never looks by itself, so a wake-up that is lost stops the test.
func TestNoMessageIsMissedByThoseThatWatchAndThoseThatSleep(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	a, b, o := watching(t, time.Hour, nil)
	var disturbed atomic.Bool
	stopped := make(chan struct{})
	defer func() {
		disturbed.Store(true)
		<-stopped
	}()
	go func() {
		defer close(stopped)
		for !disturbed.Load() {
			o.Disturb()
			<-time.After(50 * time.Microsecond)
		}
	}()
	for i := range rounds {
		slept := make(chan struct{})
		go func() {
			defer close(slept)
			if i%3 == 0 {
				o.Need(true)
				b.received(i)
				o.Need(false)
			}
		}()
		go a.post(emptySend())
		o.enough.Store(int64(i + 1))
		for b.completed() <= i {
			if !o.Watch(o.look) {
				o.Need(true)
				b.received(i)
				o.Need(false)
			}
		}
		<-slept
		b.recv()
	}
}
