package stream

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw/iwarp"
	dat "godat/runtime"
)

// Each connection is cut when its reader has a random number of bytes, by either end.
// The reader has a prefix of what was written, and an error that is no end of the stream.
func TestACutConnectionDeliversAPrefix(t *testing.T) {
	const atATime = 20
	rounds := 17 // times three providers: about 1000 connections
	if testing.Short() {
		rounds = 3
	}
	onEachWith(t, Config{Ring: leastRing}, func(t *testing.T, r *rig) {
		want := body(20*leastRing, 1)
		for round := range rounds {
			cuts := make(chan error, atATime)
			for i := range atATime {
				client, server := r.pair()
				random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				go func() { cuts <- writeUntilCut(client, want, rand.New(rand.NewPCG(uint64(i), 1))) }()
				go func() { cuts <- readAndCut(t, client, server, want, random) }()
			}
			for range 2 * atATime {
				require.NoError(t, <-cuts)
			}
		}
	})
}

// writeUntilCut writes pieces of random lengths until that fails.
func writeUntilCut(c *Conn, want []byte, random *rand.Rand) error {
	for len(want) > 0 {
		n := min(len(want), 1+random.IntN(1<<random.IntN(14)))
		if _, err := c.Write(want[:n]); err != nil {
			return nil
		}
		want = want[n:]
	}
	return nil
}

// readAndCut reads some bytes, has one end break the connection, and reads the rest.
func readAndCut(t *testing.T, client, server *Conn, want []byte, random *rand.Rand) error {
	got := make([]byte, random.IntN(len(want)/2))
	n, err := io.ReadFull(server, got)
	if err != nil {
		return err
	}
	cutter := []*Conn{client, server}[random.IntN(2)]
	if err := cutter.line.endpoint.Disconnect(ep.Abrupt); err != nil {
		return err
	}
	rest, err := io.ReadAll(server)
	assert.Error(t, err, "a cut is no end of the stream")
	got = append(got[:n], rest...)
	assert.True(t, bytes.HasPrefix(want, got), "%d bytes", len(got))
	return nil
}

// The same over a transport that breaks in the middle of what it carries.
func TestABrokenTransportDeliversAPrefix(t *testing.T) {
	const size = 1 << 20
	want := body(size, 1)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		limit := random.Int64N(size / 2) // the writer can't be through then
		r := newBrokenRig(t, limit)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, _ := r.ln.Accept()
			accepted <- c
		}()
		client, err := r.dialer().Dial("", r.ln.Addr().String())
		if err != nil { // it broke before the hellos had been exchanged
			require.NoError(t, r.ln.Close())
			if c := <-accepted; c != nil {
				require.NoError(t, c.Close())
			}
			continue
		}
		server := <-accepted
		wrote := write(func() error {
			_, err := client.Write(want)
			return err
		})
		got, err := io.ReadAll(server)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF, "as the end of a stream is")
		assert.True(t, bytes.HasPrefix(want, got), "%d bytes", len(got))
		assert.LessOrEqual(t, int64(len(got)), limit)
		require.Error(t, <-wrote)
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
	}
}

// The system of a process that dies closes its sockets, which is not a Close of the peer's: what
// was written may not have come.
func TestAPeerThatDiesHasNotClosedItsConnection(t *testing.T) {
	sockets := make(chan net.Conn, 1)
	r := openRig(t, "iwarp:127.0.0.1", Config{}, dat.WithProvider(iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			sockets <- c
			return c, err
		},
	})))
	client, server := r.pair()
	_, err := client.Write([]byte("bytes"))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, (<-sockets).Close())
	<-server.line.down
	_, err = server.Write([]byte("too late"))
	require.ErrorContains(t, err, "the stream ended without a farewell")
	require.ErrorContains(t, server.CloseWrite(), "the stream ended without a farewell")
}
