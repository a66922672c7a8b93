package bytestream

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"godat/hw/sim"
	dat "godat/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// onEach runs a test with both ends of a stream, over each provider that needs no device.
func onEach(t *testing.T, f func(t *testing.T, ia *dat.IA, a, b *Conn)) {
	for name, opts := range map[string][]dat.Option{
		"loop": nil, "iwarp:127.0.0.1": nil, "sim": {dat.WithProvider(sim.New(sim.Config{Seed: 1}))},
	} {
		t.Run(name, func(t *testing.T) {
			ia, err := dat.Open(t.Context(), name, opts...)
			require.NoError(t, err)
			defer func() { require.NoError(t, ia.Close()) }()
			ln, err := Listen(ia, 0)
			require.NoError(t, err)
			defer func() { _ = ln.Close() }() // the adapter may have closed it
			accepted := make(chan *Conn)
			go func() {
				c, err := ln.Accept()
				assert.NoError(t, err)
				accepted <- c
			}()
			a, err := Dial(t.Context(), ia, ln.Addr())
			require.NoError(t, err)
			b := <-accepted
			require.NotNil(t, b)
			f(t, ia, a, b)
			_ = errors.Join(a.Close(), b.Close()) // which the test has looked at, if it closed them
		})
	}
}

// send writes data in pieces of that many bytes, changes what it has written, and closes.
func send(c *Conn, data []byte, piece int) error {
	buf := make([]byte, piece)
	for len(data) > 0 {
		n := copy(buf, data)
		if _, err := c.Write(buf[:n]); err != nil {
			return err
		}
		clear(buf) // a race with the device, if it still reads it
		data = data[n:]
	}
	return c.Close()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	for _, piece := range []int{100, slotSize, 2*mostLent + 7} {
		onEach(t, func(t *testing.T, _ *dat.IA, a, b *Conn) {
			some := data
			if piece < slotSize {
				some = data[:256<<10]
			}
			done := make(chan error, 1)
			go func() { done <- send(a, some, piece) }()
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.NoError(t, <-done)
			assert.True(t, bytes.Equal(some, got), "%d of %d bytes", len(got), len(some))
			require.NoError(t, b.Close())
		})
	}
}

// Both ends grant all the time, and each has one message left for that now and then.
func TestGrantsDoNotWaitForEachOther(t *testing.T) {
	data := make([]byte, 32<<10)
	for range 20 {
		onEach(t, func(t *testing.T, _ *dat.IA, a, b *Conn) {
			done := make(chan error, 1)
			go func() { done <- send(a, data, 100) }()
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.NoError(t, <-done)
			assert.Len(t, got, len(data))
		})
	}
}

func TestBothEndsWriteAtOnce(t *testing.T) {
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	onEach(t, func(t *testing.T, _ *dat.IA, a, b *Conn) {
		done := make(chan error, 4)
		for _, c := range []*Conn{a, b} {
			go func() {
				_, err := c.Write(data)
				done <- err
			}()
			go func() {
				got := make([]byte, len(data))
				_, err := io.ReadFull(c, got)
				if !bytes.Equal(data, got) {
					err = errors.Join(err, errors.New("other bytes"))
				}
				done <- err
			}()
		}
		for range 4 {
			require.NoError(t, <-done)
		}
	})
}

// A Write that nobody reads waits; Close ends it, and its bytes are the caller's again.
func TestCloseEndsCallsThatWait(t *testing.T) {
	onEach(t, func(t *testing.T, _ *dat.IA, a, b *Conn) {
		done := make(chan error, 2)
		go func() {
			_, err := a.Read(make([]byte, 1))
			done <- err
		}()
		go func() {
			p := make([]byte, 4*depth*slotSize)
			_, err := a.Write(p)
			clear(p)
			done <- err
		}()
		require.Eventually(t, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.posted > 0 && !a.mayWrite()
		}, time.Minute, time.Millisecond)
		require.NoError(t, a.Close())
		for range 2 {
			require.ErrorIs(t, <-done, net.ErrClosed)
		}
		_, err := io.Copy(io.Discard, b)
		require.NoError(t, err)
		_, err = b.Write([]byte{1})
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestTheAdaptersCloseEndsCallsThatWait(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA, a, b *Conn) {
		done := make(chan error, 2)
		for _, c := range []*Conn{a, b} {
			go func() {
				_, err := c.Read(make([]byte, 1))
				done <- err
			}()
		}
		require.NoError(t, ia.Close())
		for range 2 {
			require.Error(t, <-done)
		}
	})
}

func TestAReadBehindCloseReadsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, _ *dat.IA, a, b *Conn) {
		_, err := a.Write([]byte("unread"))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.mayRead()
		}, time.Minute, time.Millisecond)
		require.NoError(t, b.Close())
		_, err = b.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// A stranger whose request is a promise that it does not keep is waited for by nobody else.
func TestAStrangerHoldsUpNoOther(t *testing.T) {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1", dat.WithParams(map[string]string{"mpa": "1h"}))
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	ln, err := Listen(ia, 0)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stranger, err := new(net.Dialer).DialContext(ctx, "tcp", ln.Addr())
	require.NoError(t, err)
	defer stranger.Close()
	// MPA's request of revision 2: enhanced, with CRCs, and a ready-to-receive that never comes (RFC 6581).
	_, err = stranger.Write([]byte("MPA ID Req Frame\x50\x02\x00\x04\xc0\x10\xc0\x10"))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = c.Write([]byte("hello")) // of the stranger's it fails
				_ = c.Close()
			})
		}
	})
	_, err = io.ReadFull(stranger, make([]byte, 20)) // it is accepted
	require.NoError(t, err)
	c, err := Dial(ctx, ia, ln.Addr())
	if assert.NoError(t, err) {
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(got))
		require.NoError(t, c.Close())
	}
	require.NoError(t, stranger.Close())
	require.NoError(t, ln.Close())
	all.Wait()
}
