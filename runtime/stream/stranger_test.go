package stream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// portOfAnother is a port at which an HTTP server listens, over TLS or not, or nobody answers.
func portOfAnother(t *testing.T, speaks string) string {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = tcp.Close() })
	if speaks == "nothing" {
		return tcp.Addr().String()
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	ln := tcp
	if speaks == "TLS" {
		own, _ := certificate(t)
		ln = tls.NewListener(tcp, &tls.Config{Certificates: []tls.Certificate{own}})
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return tcp.Addr().String()
}

func TestTheErrorOfADialToAnotherServerSaysWhatListensThere(t *testing.T) {
	for speaks, text := range map[string]string{"HTTP": "HTTP", "TLS": "TLS"} {
		t.Run(speaks, func(t *testing.T) {
			r := newRig(t, "iwarp:127.0.0.1", Config{})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := r.dialer().DialContext(ctx, "", portOfAnother(t, speaks))
			require.Error(t, err)
			t.Log(err)
			assert.ErrorContains(t, err, text)
		})
	}
}

func TestADialThatRanOutOfTimeSaysWhatItHadComeTo(t *testing.T) {
	r := newRig(t, "iwarp:127.0.0.1", Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := r.dialer().DialContext(ctx, "", portOfAnother(t, "nothing"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	t.Log(err)
	assert.ErrorIs(t, err, dat.ErrTimeout)
	assert.ErrorAs(t, err, new(*dat.Cause))
}

func TestAClosedAdapterIsNetErrClosed(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		require.NoError(t, ia.Close())
		_, err = Listen(t.Context(), ia, ":0", Config{})
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = (&Dialer{IA: ia}).Dial("", r.ln.Addr().String())
		assert.ErrorIs(t, err, net.ErrClosed)
	})
}
