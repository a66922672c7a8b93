package stream

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// users is how many share an adapter now, which is open while there are any.
func users(name string) (n int) {
	s := sharedBy(name)
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if (s.ia != nil) != (s.users > 0) {
		panic("an adapter is open without a user, or closed with one")
	}
	return s.users
}

// sharedNames are adapters that may be opened by name alone.
var sharedNames = map[string]Config{
	"the default": {}, "a name": {Adapter: "iwarp:127.0.0.1"}, "loop": {Adapter: "loop"},
}

// sendHello sends a line from one end to the other.
func sendHello(t *testing.T, from, to net.Conn) {
	_, err := io.WriteString(from, "hello")
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = io.ReadFull(to, got)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
}

func TestStreamsWithoutAnAdapterShareOneThatEndsWithTheLastOfThem(t *testing.T) {
	for name, cfg := range sharedNames {
		t.Run(name, func(t *testing.T) {
			ln, err := Listen(t.Context(), nil, map[bool]string{false: "127.0.0.1:0", true: ":0"}[cfg.Adapter == "loop"], cfg)
			require.NoError(t, err)
			d := &Dialer{Config: cfg}
			accepted := make(chan net.Conn, 1)
			go func() {
				peer, err := ln.Accept()
				assert.NoError(t, err)
				accepted <- peer
			}()
			nc, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
			require.NoError(t, err)
			peer := <-accepted
			require.NotNil(t, peer)
			assert.Equal(t, 3, users(cfg.Adapter))
			require.NoError(t, ln.Close())
			require.NoError(t, ln.Close())
			assert.Equal(t, 2, users(cfg.Adapter))
			sendHello(t, nc, peer)
			require.NoError(t, nc.Close())
			require.NoError(t, nc.Close())
			assert.Equal(t, 1, users(cfg.Adapter))
			require.NoError(t, peer.Close())
			assert.Zero(t, users(cfg.Adapter))
		})
	}
}

func TestAFailedDialOrListenLeavesNoSharedAdapter(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for name, call := range map[string]func() error{
		"a dial of nobody":     func() error { _, err := new(Dialer).Dial("tcp", "127.0.0.1:1"); return err },
		"a dial of nonsense":   func() error { _, err := new(Dialer).Dial("tcp", "nonsense"); return err },
		"a dial out of time":   func() error { _, err := new(Dialer).DialContext(ended, "tcp", "127.0.0.1:1"); return err },
		"a bad configuration":  func() error { _, err := Listen(t.Context(), nil, ":0", Config{Ring: -1}); return err },
		"a listen out of time": func() error { _, err := Listen(ended, nil, ":0", Config{}); return err },
		"a listen at a port that is taken": func() error {
			_, err := Listen(t.Context(), nil, busy.Addr().String(), Config{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Error(t, call())
			assert.Zero(t, users(""))
		})
	}
}

func TestUsersOfASharedAdapterComeAndGoAtOnce(t *testing.T) {
	ln, err := Listen(t.Context(), nil, "127.0.0.1:0", Config{})
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				_, _ = io.Copy(nc, nc)
				_ = nc.Close()
			})
		}
	})
	var dialers sync.WaitGroup
	for range 8 {
		dialers.Go(func() {
			for range 5 {
				nc, err := (&Dialer{Config: Config{Adapter: "iwarp:127.0.0.1"}}).Dial("tcp", ln.Addr().String())
				if assert.NoError(t, err) {
					sendHello(t, nc, nc)
					assert.NoError(t, nc.Close())
				}
			}
		})
	}
	dialers.Wait()
	assert.Zero(t, users("iwarp:127.0.0.1"))
	require.NoError(t, ln.Close())
	all.Wait()
	assert.Zero(t, users(""))
}

func TestWithoutTheAdapterTheSystemsTCPIsUsedIfTheProgramSaysSo(t *testing.T) {
	cfg := Config{Adapter: "nobody's"}
	_, err := Listen(t.Context(), nil, "127.0.0.1:0", cfg)
	require.ErrorIs(t, err, hw.ErrProviderNotFound)
	assert.ErrorContains(t, err, "Config.TCP")
	_, err = (&Dialer{Config: cfg}).Dial("tcp", "127.0.0.1:1")
	require.ErrorIs(t, err, hw.ErrProviderNotFound)
	assert.ErrorContains(t, err, "Config.TCP")

	cfg.TCP = true
	ln, err := Listen(t.Context(), nil, "127.0.0.1:0", cfg)
	require.NoError(t, err)
	assert.Equal(t, "tcp", ln.Addr().Network())
	nc, err := (&Dialer{Config: cfg}).Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	assert.IsType(t, (*net.TCPConn)(nil), nc)
	peer, err := ln.Accept()
	require.NoError(t, err)
	sendHello(t, nc, peer)
	for _, c := range []io.Closer{nc, peer, ln, ln} {
		assert.NoError(t, c.Close())
	}
	_, err = ln.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, "Listener("+ln.Addr().String()+")", ln.String())
	assert.Zero(t, users(cfg.Adapter))
}

// A peer that is down is no missing adapter.
func TestAFailureBehindTheOpeningIsNoReasonForTCP(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = (&Dialer{Config: Config{TCP: true}}).DialContext(ctx, "tcp", tcp.Addr().String())
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Zero(t, users(""))
}

func TestAnAdapterAndTheNameOfOneAreRefused(t *testing.T) {
	r := newRig(t, "loop", Config{})
	for _, cfg := range []Config{{Adapter: "loop"}, {TCP: true}} {
		_, err := Listen(t.Context(), r.ia, ":0", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		_, err = (&Dialer{IA: r.ia, Config: cfg}).Dial("", r.ln.Addr().String())
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
		assert.ErrorContains(t, err, "without an adapter")
	}
}
