package iwarp

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
)

// readByConsumers requires that most of some messages are there after three polls. On one
// processor the receiver does not run while the test does not yield.
func readByConsumers(t *testing.T, from, to *peer) {
	t.Helper()
	const rounds = 20
	atOnce := 0
	for range rounds {
		had := to.completed()
		to.recv()
		from.post(hw.SendWR{Op: hw.OpSend})
		for range 3 {
			to.dev.(hw.Progresser).Progress()
		}
		if to.completed() > had {
			atOnce++
		}
		to.received(had)
	}
	assert.Greater(t, atOnce, rounds/2)
}

func TestConsumersPollEachOfADevicesConnections(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	poller := &nb.dev.(*device).poller
	for range netpollEvery {
		poller.progress()
	}
	assert.True(t, poller.begun)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var froms, tos []*peer
	for n := 1; n <= 3; n++ {
		a, b := na.peer(), nb.peer()
		join(a, b)
		froms, tos = append(froms, a), append(tos, b)
		poller.mu.Lock()
		assert.Equal(t, n > 1, poller.opened, "%d connections", n)
		assert.Equal(t, n == 1, poller.alone.Load() != nil, "%d connections", n)
		poller.mu.Unlock()
		for i := range tos {
			readByConsumers(t, froms[i], tos[i])
		}
	}
	tos[0].end(true)
	readByConsumers(t, froms[2], tos[2])
}

// A device whose only connection has ended has its next one polled in the same way.
func TestTheConnectionAfterTheOnlyOneIsPolledToo(t *testing.T) {
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	poller := &nb.dev.(*device).poller
	for range netpollEvery {
		poller.progress()
	}
	for range 3 {
		a, b := na.peer(), nb.peer()
		join(a, b)
		r := takeRight(t, b, started)
		poller.mu.Lock()
		assert.Same(t, r, poller.alone.Load())
		poller.mu.Unlock()
		giveUp(r)
		a.end(true)
		b.awaitDown()
		b.end(true)
		<-r.link.rxDone
		poller.mu.Lock()
		assert.Nil(t, poller.alone.Load())
		assert.False(t, poller.opened)
		poller.mu.Unlock()
	}
}

// On one processor the receiver does not run while the test does not yield, unless the system
// interrupts the test: then the receiver may read what a round is about.
func TestTheCallAfterAReadReadsNothing(t *testing.T) {
	a, b := pair(t, nil)
	poller := &b.dev.(*device).poller
	for range netpollEvery {
		poller.progress()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	takeRight(t, b, started)
	giveUp(&connections(b)[0].recv)
	round := func(i int) (wrong string) {
		b.recv()
		a.post(hw.SendWR{Op: hw.OpSend})
		poller.calls.Store(0)
		poller.read.Store(true)
		poller.progress()
		if b.completed() != i {
			return "the call after a read has read"
		}
		for b.completed() == i {
			poller.calls.Store(0)
			poller.progress()
		}
		switch {
		case !poller.read.Load():
			return "the read is not noted"
		case poller.calls.Load() != 1:
			return "a read that finds octets costs as much as a call in vain"
		}
		return ""
	}
	var wrong []string
	for i := range 20 {
		if w := round(i); w != "" {
			wrong = append(wrong, w)
		}
	}
	assert.Less(t, len(wrong), 10, "%q", wrong)
}
