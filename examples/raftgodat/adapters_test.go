//go:build !guest

package raftgodat

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/iwarp"
	_ "godat/hw/loop"
	dat "godat/runtime"
)

// adapters are what the tests run on: each opens an adapter.
var adapters = map[string]func(t *testing.T) (*dat.IA, error){
	"loop":  func(t *testing.T) (*dat.IA, error) { return dat.Open(t.Context(), "loop") },
	"iwarp": func(t *testing.T) (*dat.IA, error) { return dat.Open(t.Context(), "iwarp:127.0.0.1") },
	"iwarp over TLS": func(t *testing.T) (*dat.IA, error) {
		return dat.Open(t.Context(), "iwarp:127.0.0.1", dat.WithProvider(secured(t)))
	},
}

// secured is iwarp whose connections are TLS. One certificate serves both ends, and is its own authority.
func secured(t *testing.T) hw.Provider {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"raft"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ServerName:   "raft", RootCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}
	return iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
		},
		Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, config) },
	})
}
