package loop

import (
	"bytes"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A region is deregistered in the middle of a long copy from or to it: Deregister
// returns in time, and from then on no byte is read or written. The test writes the
// memory with no other synchronization, so that the race detector finds an access.
func TestDeregisterEndsALongCopy(t *testing.T) {
	for _, c := range []struct {
		name       string
		op         hw.Op
		source     bool // the source is taken away, else the sink
		sent, recv hw.Status
	}{
		{"source of a send", hw.OpSend, true, hw.StatusLocalProtection, hw.StatusFlushed},
		{"sink of a send", hw.OpSend, false, hw.StatusRemoteResponder, hw.StatusLocalProtection},
		{"source of a write", hw.OpWrite, true, hw.StatusLocalProtection, hw.StatusFlushed},
		{"target of a write", hw.OpWrite, false, hw.StatusRemoteAccess, hw.StatusFlushed},
		{"source of a read", hw.OpRead, true, hw.StatusRemoteAccess, hw.StatusFlushed},
		{"sink of a read", hw.OpRead, false, hw.StatusLocalProtection, hw.StatusFlushed},
	} {
		t.Run(c.name, func(t *testing.T) {
			for attempt := 0; !takeAway(t, c.op, c.source, c.sent, c.recv); attempt++ {
				require.Less(t, attempt, 50, "never in time")
			}
		})
	}
}

// takeAway deregisters a region during a copy, and reports whether the copy was still
// in progress.
func takeAway(t *testing.T, op hw.Op, source bool, sent, recv hw.Status) bool {
	a, b, x, y := longPair(t)
	gone := x
	if source == (op == hw.OpRead) {
		gone = y
	}
	p := a.qp.(*queuePair).out.Load()
	start := accesses(p)
	b.recv(1, y.sge(b, 0, areaLen))
	a.post(hw.SendWR{
		ID: 1, Op: op, Flags: hw.WRSignaled, SGL: []hw.SGE{x.sge(a, 0, areaLen)},
		RKey: y.mr.RKey(), RemoteAddr: y.sge(b, 0, 0).Addr,
	})
	spinUntil(t, func() bool { return accesses(p) > start }) // a chunk is moved
	require.NoError(t, gone.mr.Deregister())
	fill := bytes.Repeat([]byte{0x55}, areaLen)
	copy(gone.mem, fill)
	wc := a.sends.wait(1)[0]
	require.True(t, bytes.Equal(fill, gone.mem))
	if wc.Status == hw.StatusSuccess {
		return false
	}
	assert.Equal(t, sent, wc.Status)
	assert.Equal(t, recv, b.recvs.wait(1)[0].Status)
	return true
}

// The same with short messages: the poster copies, a few instructions after it has
// looked the key up.
func TestDeregisterWaitsForAccessesInProgress(t *testing.T) {
	const rounds = 300
	for _, source := range []bool{true, false} {
		t.Run(fmt.Sprintf("source=%v", source), func(t *testing.T) {
			dev := open(t, uniqueName())
			a := newSide(t, dev, nil)
			b := newSide(t, dev, nil)
			connect(t, a, b)
			owner := b
			if source {
				owner = a
			}
			mem := make([]byte, 64)
			var current atomic.Uint64 // the key of this round's region, dead once the round is over
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				post(t, a, b, owner == a, &current, stop)
			}()
			for range rounds {
				region, err := dev.Register(owner.zone, mem, all)
				require.NoError(t, err)
				current.Store(uint64(region.LKey()))
				for range 3 {
					runtime.Gosched()
				}
				require.NoError(t, region.Deregister())
				for i := range mem {
					mem[i]++
				}
			}
			close(stop)
			<-done
		})
	}
}

// post writes between the sides as fast as it can, from or to the region whose key is
// current. A request that meets a dead key ends the connection; post then makes a new
// one.
func post(t *testing.T, a, b *side, source bool, current *atomic.Uint64, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		key := uint32(current.Load())
		r := a.dev.(*device).Keys.Lookup(key)
		if r.Size == 0 {
			runtime.Gosched()
			continue
		}
		w := wr(hw.OpWrite, a, 0, 64, b.mr.RKey(), b.addr(0))
		if source {
			w.SGL = []hw.SGE{{Addr: r.Addr, Len: 64, LKey: key}}
		} else {
			w.RKey, w.RemoteAddr = key, r.Addr
		}
		n, err := a.qp.PostSend([]hw.SendWR{w})
		assert.NoError(t, err)
		assert.Equal(t, 1, n)
		if a.facts.isDown() == 0 {
			continue
		}
		a.qp.Break(false)
		b.qp.Break(false)
		for _, s := range []*side{a, b} {
			spinUntil(t, s.ended)
			s.reset()
		}
		require.NoError(t, a.qp.(*queuePair).conn.Attempt("test"))
		require.NoError(t, b.qp.(*queuePair).conn.Attempt("test"))
		require.True(t, join(a.qp.(*queuePair).conn, b.qp.(*queuePair).conn, nil))
	}
}

// Deregister waits for a chunk at most. It does not wait for a send that waits for a
// receive, nor for a pipe that waits for a worker.
func TestDeregisterDoesNotWaitForAPeerOrAWorker(t *testing.T) {
	a, b := pair(t, nil)
	a.post(send(1, a.sge(0, 8)))
	require.NoError(t, a.mr.Deregister())
	b.recv(1, b.sge(0, 8))
	assert.Equal(t, hw.StatusLocalProtection, a.sends.all()[0].Status, "it had not begun")

	c, d := newSide(t, a.dev, nil), newSide(t, a.dev, nil)
	connect(t, c, d)
	p := hold(t, c)
	p.token.Leave() // as handOver does
	done := make(chan error)
	go func() { done <- c.mr.Deregister() }()
	select {
	case err := <-done:
		require.NoError(t, err)
		p.token.Resume()
		p.run()
	case <-time.After(2 * time.Second):
		t.Error("it waits for a worker")
		p.token.Resume()
		p.run()
		require.NoError(t, <-done)
	}
}
