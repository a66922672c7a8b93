package stream

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
	"godat/hw/sim"
	dat "godat/runtime"
)

// onEach runs a test on each of the adapters: those that need no device and the simulated
// one, or, in the guest, the guest's device.
func onEach(t *testing.T, f func(t *testing.T, r *rig)) { onEachWith(t, Config{}, f) }

// onEachWith is onEach with a configuration.
func onEachWith(t *testing.T, cfg Config, f func(t *testing.T, r *rig)) {
	for _, provider := range adapters {
		t.Run(provider, func(t *testing.T) { f(t, newRig(t, provider, cfg)) })
	}
}

// onEachAtOnce is onEach on all adapters at the same time, for a test that mostly waits.
func onEachAtOnce(t *testing.T, f func(t *testing.T, r *rig)) {
	for _, provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			f(t, newRig(t, provider, Config{}))
		})
	}
}

// rig is an adapter with a listener, for tests.
type rig struct {
	t   testing.TB
	ia  *dat.IA
	ln  *Listener
	cfg Config
}

func newRig(t testing.TB, provider string, cfg Config) *rig {
	if provider == "sim" {
		return openRig(t, provider, cfg, dat.WithProvider(sim.New(sim.Config{Seed: 1})))
	}
	return openRig(t, provider, cfg)
}

func openRig(t testing.TB, provider string, cfg Config, opts ...dat.Option) *rig {
	r := &rig{t: t, cfg: cfg}
	var err error
	r.ia, err = dat.Open(t.Context(), provider, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.ia.Close()) })
	r.ln, err = Listen(t.Context(), r.ia, ":0", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.ln.Close()) })
	return r
}

// brokenConn is a connection that breaks after so many bytes.
type brokenConn struct {
	net.Conn
	left int64
}

func (c *brokenConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p[:min(int64(len(p)), c.left)])
	if c.left -= int64(n); c.left == 0 && err == nil {
		err = errors.Join(syscall.ECONNRESET, c.Close())
	}
	return n, err
}

// newBrokenRig is a rig of iwarp whose dialed connections break after limit bytes.
func newBrokenRig(t *testing.T, limit int64) *rig {
	return openRig(t, "iwarp:127.0.0.1", Config{}, dat.WithProvider(iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return &brokenConn{c, limit}, nil
		},
	})))
}

func (r *rig) dialer() *Dialer { return &Dialer{IA: r.ia, Config: r.cfg} }

// connect makes a connection: the client's end and the server's.
func (r *rig) connect() (client, server *Conn, err error) {
	accepted := make(chan net.Conn, 1)
	go func() {
		c, _ := r.ln.Accept()
		accepted <- c
	}()
	c, err := r.dialer().DialContext(r.t.Context(), "", r.ln.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	s, ok := (<-accepted).(*Conn)
	if !ok {
		return nil, nil, errors.Join(errors.New("Accept failed"), c.Close())
	}
	return c.(*Conn), s, nil
}

// pair is connect for a test that closes both ends at its end.
func (r *rig) pair() (client, server *Conn) {
	client, server, err := r.connect()
	require.NoError(r.t, err)
	r.t.Cleanup(func() {
		require.NoError(r.t, client.Close())
		require.NoError(r.t, server.Close())
	})
	return client, server
}
