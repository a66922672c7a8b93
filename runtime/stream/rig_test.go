package stream

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// onEach runs a test on each provider that needs no device.
func onEach(t *testing.T, f func(t *testing.T, r *rig)) {
	for _, provider := range []string{"loop", "iwarp:127.0.0.1"} {
		t.Run(provider, func(t *testing.T) { f(t, newRig(t, provider, Config{})) })
	}
}

// rig is an adapter with a listener, for tests.
type rig struct {
	t   *testing.T
	ia  *dat.IA
	ln  *Listener
	cfg Config
}

func newRig(t *testing.T, provider string, cfg Config) *rig {
	r := &rig{t: t, cfg: cfg}
	var err error
	r.ia, err = dat.Open(t.Context(), provider)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.ia.Close()) })
	r.ln, err = Listen(t.Context(), r.ia, ":0", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.ln.Close()) })
	return r
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
