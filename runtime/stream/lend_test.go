package stream

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
	dat "godat/runtime"
)

// The program uses its bytes again as soon as Write has returned.
func TestAWriterHasItsBytesBackWhenWriteReturns(t *testing.T) {
	onEachWith(t, Config{Ring: 1 << 20}, func(t *testing.T, r *rig) {
		client, server := r.pair()
		var want, p []byte
		sent := write(func() error {
			for i, n := range []int{leastLent - 1, leastLent, 100 << 10, mostLent + 1, leastLent + 5, 3*mostLent + 77} {
				p = append(p[:0], body(n, byte(i))...)
				want = append(want, p...)
				if _, err := client.Write(p); err != nil {
					return err
				}
				clear(p)
			}
			return client.CloseWrite()
		})
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		assert.Equal(t, want, got)
	})
}

func TestALargeWriteTakesNoImage(t *testing.T) {
	r := newRig(t, "loop", Config{})
	client, server := r.pair()
	crossing(t, client, server, body(1<<20, 1))
	assert.Nil(t, client.line.flow.out.image.mem)
}

// gate is a connection that takes no bytes while it is shut, but for so many.
type gate struct {
	net.Conn
	shut *sync.RWMutex
	let  *atomic.Int64 // nil for none
}

func (g gate) Write(p []byte) (int, error) {
	if g.let != nil && g.let.Add(-int64(len(p))) > 0 {
		return g.Conn.Write(p)
	}
	g.shut.RLock()
	defer g.shut.RUnlock()
	return g.Conn.Write(p)
}

// newGatedRig is a rig of iwarp whose dialed connections are gates.
func newGatedRig(t *testing.T, shut *sync.RWMutex, let *atomic.Int64) *rig {
	return openRig(t, "iwarp:127.0.0.1", Config{Ring: 1 << 20}, dat.WithProvider(iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return gate{c, shut, let}, err
		},
	})))
}

// The network takes nothing until the deadline has passed and the program has used its
// bytes again. All that Write has counted arrives as it was.
func TestAWriteWhoseDeadlinePassesLeavesACopyToTheDevice(t *testing.T) {
	var shut sync.RWMutex
	r := newGatedRig(t, &shut, nil)
	client, server := r.pair()
	crossing(t, client, server, body(mostLent, 1)) // the ring is large from here on
	shut.Lock()
	var want []byte
	for i, n := range []int{256 << 10, 100 << 10} { // the second Write finds the copy of the first under way
		p := body(n, byte(i))
		require.NoError(t, client.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		n, err := client.Write(p)
		assert.Equal(t, len(p), n, "the ring has room: %v", err)
		want = append(want, p...)
		clear(p)
	}
	shut.Unlock()
	got := make([]byte, len(want))
	_, err := io.ReadFull(server, got)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// The network takes a part of a Write before the deadline: the copy has what is left, at its place.
func TestADeadlineInTheMiddleOfAWriteLeavesACopyOfTheRest(t *testing.T) {
	var shut sync.RWMutex
	var let atomic.Int64
	r := newGatedRig(t, &shut, &let)
	client, server := r.pair()
	crossing(t, client, server, body(mostLent, 1)) // the ring is large from here on
	shut.Lock()
	let.Store(mostPiece + mostPiece/2)
	began := client.line.flow.out.done.Load()
	p := make([]byte, mostLent)
	_, _ = rand.Read(p) // never fails; no two parts of it are alike
	want, wrote := bytes.Clone(p), 0
	sent := write(func() error {
		wrote, _ = client.Write(p) // whether it has posted everything when its time is over is not sure
		clear(p)
		return nil
	})
	require.Eventually(t, func() bool {
		done := client.line.flow.out.done.Load()
		return done > began && client.line.flow.out.produced.Load() > done
	}, time.Minute, time.Millisecond)
	require.NoError(t, client.SetWriteDeadline(time.Unix(1, 0)))
	require.NoError(t, <-sent)
	assert.Less(t, client.line.flow.out.done.Load(), client.line.flow.out.loan.until, "the device has still to read")
	shut.Unlock()
	got := make([]byte, wrote)
	_, err := io.ReadFull(server, got)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want[:wrote], got))
}

// Close gives the program its bytes back, though the network takes none.
func TestCloseGivesTheBytesOfAWriteBack(t *testing.T) {
	var shut sync.RWMutex
	r := newGatedRig(t, &shut, nil)
	r.cfg.Linger = -1
	client, server := r.pair()
	crossing(t, client, server, body(mostLent, 1))
	shut.Lock()
	p := body(4*mostLent, 2)
	sent := write(func() error {
		_, err := client.Write(p)
		clear(p) // a race with the device, if it reads p
		return err
	})
	require.Eventually(t, func() bool { return client.line.writer.announced() }, time.Minute, time.Millisecond)
	closed := write(client.Close)
	require.ErrorIs(t, <-sent, net.ErrClosed)
	shut.Unlock()
	require.NoError(t, <-closed)
}

// What lies in a ring is not lent on, because the ring's peer can still change it.
func TestAConnThatGetsTheBytesOfARingCopiesThem(t *testing.T) {
	onEachWith(t, Config{Ring: 1 << 20}, func(t *testing.T, r *rig) {
		from, left := r.pair()
		right, to := r.pair()
		crossing(t, from, left, body(mostLent, 1)) // the ring is large from here on
		want, got := body(200<<10, 2), make([]byte, 200<<10)
		sent := write(func() error {
			if _, err := from.Write(want); err != nil {
				return err
			}
			return from.CloseWrite()
		})
		require.Eventually(t, left.line.flow.in.fin.Load, time.Minute, time.Millisecond)
		relayed := write(func() error {
			_, err := left.WriteTo(right)
			return err
		})
		_, err := io.ReadFull(to, got)
		require.NoError(t, err)
		require.NoError(t, <-sent)
		require.NoError(t, <-relayed)
		assert.Equal(t, want, got)
		assert.Nil(t, right.line.flow.out.loan.region)
	})
}

func TestAnIdleConnectionKeepsNothingThatWasWritten(t *testing.T) {
	r := newRig(t, "loop", Config{})
	client, server := r.pair()
	p := new([mostLent]byte)
	lent := weak.Make(p)
	crossing(t, client, server, p[:])
	p = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		return lent.Value() == nil
	}, time.Minute, time.Millisecond)
}
