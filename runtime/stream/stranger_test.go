package stream

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// portOfAnother is a port at which an HTTP server listens, over TLS or not, or nobody answers, or everybody is refused
// in the words of HTTP: an HTTP server does that when a request happens to have the end of a line in it.
func portOfAnother(t *testing.T, speaks string) string {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = tcp.Close() })
	if speaks == "nothing" {
		return tcp.Addr().String()
	}
	if speaks == "HTTP at once" {
		refused := make(chan error, 1)
		go func() {
			c, err := tcp.Accept()
			if err == nil {
				_, err = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}
			refused <- err
		}()
		t.Cleanup(func() { require.NoError(t, <-refused) })
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
	for speaks, text := range map[string]string{"HTTP": "HTTP|another protocol", "HTTP at once": "HTTP", "TLS": "TLS"} {
		t.Run(speaks, func(t *testing.T) {
			r := newRig(t, "iwarp:127.0.0.1", Config{})
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := r.dialer().DialContext(ctx, "", portOfAnother(t, speaks))
			require.Error(t, err)
			t.Log(err)
			assert.Regexp(t, text, err.Error()) // what has not answered in time is not told by name
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
	assert.ErrorIs(t, err, hw.ErrTimeout)
	assert.ErrorAs(t, err, new(*hw.Cause))
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
