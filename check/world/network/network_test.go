package network

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pair are the ends of a connection.
func pair(t *testing.T, n *Network) (client, server net.Conn) {
	t.Helper()
	l, err := n.Host("10.0.0.2").Listen("10.0.0.2:0")
	require.NoError(t, err)
	client, err = n.Host("10.0.0.1").Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return client, server
}

var fast = Config{Latency: time.Millisecond, Jitter: time.Millisecond, Room: 1000, Piece: 300}

func TestOctetsComeWholeInOrderAndThenTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		client, server := pair(t, n)
		sent := make([]byte, 50_000)
		for i := range sent {
			sent[i] = byte(i * i)
		}
		go func() {
			_, err := client.Write(sent)
			assert.NoError(t, err)
			assert.NoError(t, client.Close())
		}()
		got, err := io.ReadAll(server)
		require.NoError(t, err)
		assert.Equal(t, sent, got)
		_, err = client.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, server.Close())
		assert.Greater(t, n.Stats.Pieces, 50_000/300)
	})
}

func TestAWayThatIsHeldLetsNothingPassUntilItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		client, server := pair(t, n)
		n.Hold("10.0.0.2", "10.0.0.1")
		_, err := client.Write([]byte("late"))
		require.NoError(t, err)
		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Minute)))
		b := make([]byte, 8)
		_, err = server.Read(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		n.Release("10.0.0.1", "10.0.0.2")
		require.NoError(t, server.SetReadDeadline(time.Time{}))
		k, err := io.ReadAtLeast(server, b, 4)
		require.NoError(t, err)
		assert.Equal(t, "late", string(b[:k]))
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestAWayThatIsHeldOneWayBringsWhatTheOtherEndSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		client, server := pair(t, n)
		n.HoldOneWay("10.0.0.1", "10.0.0.2")
		for _, end := range []net.Conn{client, server} {
			_, err := end.Write([]byte("said"))
			require.NoError(t, err)
		}
		require.NoError(t, server.SetReadDeadline(time.Now().Add(time.Minute)))
		b := make([]byte, 4)
		_, err := server.Read(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_, err = io.ReadFull(client, b)
		require.NoError(t, err)
		n.Release("10.0.0.2", "10.0.0.1")
		require.NoError(t, server.SetReadDeadline(time.Time{}))
		_, err = io.ReadFull(server, b)
		require.NoError(t, err)
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestASlowWayHasItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		client, server := pair(t, n)
		n.Slow("10.0.0.1", "10.0.0.2", 1000)
		began := time.Now()
		go func() {
			_, err := client.Write(make([]byte, 5000))
			assert.NoError(t, err)
		}()
		_, err := io.ReadFull(server, make([]byte, 5000))
		require.NoError(t, err)
		assert.InDelta(t, 5, time.Since(began).Seconds(), 0.1)
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestAResetIsToldToBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		client, server := pair(t, n)
		reading := make(chan error)
		go func() {
			_, err := server.Read(make([]byte, 1))
			reading <- err
		}()
		synctest.Wait()
		n.Reset("10.0.0.1", "10.0.0.2")
		require.ErrorIs(t, <-reading, syscall.ECONNRESET)
		_, err := client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
		n.Reset("10.0.0.1", "10.0.0.2")
		assert.Equal(t, 1, n.Stats.Resets)
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}

func TestWhereNobodyListensADialIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, fast)
		h := n.Host("10.0.0.1")
		_, err := h.Dial(t.Context(), "10.0.0.2:7")
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)
		n.Host("10.0.0.2")
		_, err = h.Dial(t.Context(), "10.0.0.2:7")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		l, err := h.Listen("10.0.0.1:7")
		require.NoError(t, err)
		_, err = h.Listen("10.0.0.1:7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		for range backlog {
			_, err := h.Dial(t.Context(), "10.0.0.1:7")
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = h.Dial(ctx, "10.0.0.1:7")
		require.ErrorIs(t, err, context.DeadlineExceeded, "the backlog is full")
		require.NoError(t, l.Close())
		_, err = l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

func TestADeadlineThatPassesAsAReadBeginsEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, New(1, fast))
		for range 100 {
			require.NoError(t, client.SetDeadline(time.Now().Add(time.Nanosecond)))
			_, err := client.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	})
}
