package stream

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// body returns n bytes that are the same for the same seed.
func body(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// echo answers a request with its body.
func echo(w http.ResponseWriter, r *http.Request) {
	_, err := io.Copy(w, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

// certificate makes a certificate for a host, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"server"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(crand.Reader, form, form, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// askWith posts bodies of several sizes at a time and checks the answers.
func askWith(t *testing.T, client *http.Client, url string) {
	large := 3 << 20
	if testing.Short() {
		large = 300_000 // more than the octets of a body that net/http reads before it answers
	}
	answers := make(chan error, 4)
	for i := range cap(answers) {
		go func() {
			for _, n := range []int{0, 1, maxInline + 1, large} {
				want := body(n, byte(i))
				answer, err := client.Post(url, "application/octet-stream", bytes.NewReader(want))
				if err != nil {
					answers <- err
					return
				}
				got, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err == nil && !bytes.Equal(want, got) {
					t.Errorf("a body of %d bytes came back as another one of %d", n, len(got))
				}
				if err != nil {
					answers <- err
					return
				}
			}
			answers <- nil
		}()
	}
	for range cap(answers) {
		assert.NoError(t, <-answers)
	}
}

func TestHTTPCarriesLargeBodies(t *testing.T) {
	onEachAtOnce(t, func(t *testing.T, r *rig) {
		server := &http.Server{Handler: http.HandlerFunc(echo)}
		served := make(chan error, 1)
		go func() { served <- server.Serve(r.ln) }()
		client := &http.Client{Transport: &http.Transport{DialContext: r.dialer().DialContext}}
		askWith(t, client, "http://"+r.ln.Addr().String())
		client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

func TestHTTPOverTLSCarriesLargeBodies(t *testing.T) {
	onEachAtOnce(t, func(t *testing.T, r *rig) {
		own, trusted := certificate(t)
		server := &http.Server{Handler: http.HandlerFunc(echo), TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}}
		served := make(chan error, 1)
		go func() { served <- server.ServeTLS(r.ln, "", "") }()
		for _, http2 := range []bool{false, true} {
			client := &http.Client{Transport: &http.Transport{
				ForceAttemptHTTP2: http2,
				TLSClientConfig:   &tls.Config{RootCAs: trusted, ServerName: "server"},
				DialContext:       r.dialer().DialContext,
			}}
			askWith(t, client, "https://"+r.ln.Addr().String())
			client.CloseIdleConnections()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		require.NoError(t, server.Shutdown(ctx))
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

func TestTLSSendsCloseNotifyBehindTheBytes(t *testing.T) {
	onEachAtOnce(t, func(t *testing.T, r *rig) {
		own, trusted := certificate(t)
		client, server := r.pair()
		want := body(1<<20, 1)
		sent := make(chan error, 1)
		go func() {
			c := tls.Server(server, &tls.Config{Certificates: []tls.Certificate{own}})
			_, err := c.Write(want)
			if err == nil {
				err = c.CloseWrite()
			}
			sent <- err
		}()
		got, err := io.ReadAll(tls.Client(client, &tls.Config{RootCAs: trusted, ServerName: "server"}))
		require.NoError(t, err)
		require.NoError(t, <-sent)
		assert.Equal(t, want, got)
	})
}

var (
	_ net.Conn     = (*Conn)(nil)
	_ net.Listener = (*Listener)(nil)
)
