package conformance

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"

	"godat/hw"
	"godat/hw/iwarp"
)

// overTLS is the name of the provider of iWARP over TLS.
const overTLS = "iwarp+tls"

// The provider is registered by name, since the peer process of a case opens it by
// name.
func init() {
	config := selfSigned()
	hw.MustRegister(iwarp.New(iwarp.Config{
		Name: overTLS,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
		},
		Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, config) },
	}))
}

// selfSigned returns a configuration for either side. Its certificate and key are
// the same in each process, so the key is not secret.
func selfSigned() *tls.Config {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"godat"}, NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err == nil {
		cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ServerName:   "godat", RootCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}
}
