package mistakes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate is a configuration of TLS for both ends on this machine, whose certificate is its
// own authority.
func certificate(d *desk) *tls.Config {
	d.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(d, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(d, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(d, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, RootCAs: trusted, MinVersion: tls.VersionTLS12}
}
