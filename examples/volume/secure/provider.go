package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"godat/hw"
	"godat/hw/iwarp"
)

// Refused hears of connections that come to nothing since one end does not trust the other: the other end's address,
// whether this end refuses, and why. It may be called from any goroutine, and must not wait.
type Refused func(addr string, here bool, why string)

// Provider is iWARP over TLS in which both ends show certificates.
func (c *Credentials) Provider(refused Refused) hw.Provider {
	config := c.config()
	return iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			x, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
			if err != nil {
				tell(refused, addr, err)
				return nil, err
			}
			return &conn{Conn: x.(*tls.Conn), addr: addr, refused: refused}, nil
		},
		Listen: func(addr string) (net.Listener, error) {
			l, err := tls.Listen("tcp", addr, config)
			if err != nil {
				return nil, err
			}
			return &listener{l, refused}, nil
		},
	})
}

// config is that of both ends. Names are not compared, since a node's id is: its hello says it, and all that the
// authority has certified belongs to the volume.
func (c *Credentials) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.own}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies
		VerifyConnection:   func(s tls.ConnectionState) error { return c.verify(s.PeerCertificates) },
	}
}

// distrust is the error of a certificate that is not trusted.
type distrust struct{ error }

// Unwrap is the error.
func (d distrust) Unwrap() error { return d.error }

// Distrusts reports whether an error is of an end that does not trust the other one's certificate.
func Distrusts(err error) bool {
	var mine distrust
	return errors.As(err, &mine)
}

// verify verifies a certificate, and says by name what is wrong with it.
func (c *Credentials) verify(chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return distrust{errors.New("no certificate is shown")}
	}
	between := x509.NewCertPool()
	for _, x := range chain[1:] {
		between.AddCert(x)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		err = distrust{fmt.Errorf("the certificate of %q is by %q, and this end trusts %q: %w",
			chain[0].Subject.CommonName, chain[0].Issuer.CommonName, strings.Join(c.issuers, `", "`), err)}
	}
	return err
}

// tell tells of an error if it is one of trust.
func tell(refused Refused, addr string, err error) {
	var mine distrust
	var there *net.OpError
	switch {
	case refused == nil || errors.Is(err, io.EOF):
	case errors.As(err, &mine):
		refused(addr, true, mine.Error())
	case errors.As(err, &there) && there.Op == "remote error":
		refused(addr, false, "it does not take this end's certificate: "+there.Error())
	case strings.Contains(err.Error(), "tls: "):
		refused(addr, true, "it shows no certificate, or does not speak TLS: "+err.Error())
	}
}

type listener struct {
	net.Listener
	refused Refused
}

// Accept implements net.Listener. The handshake is the first read's.
func (l *listener) Accept() (net.Conn, error) {
	x, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	addr := x.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host // the port is another one each time
	}
	return &conn{Conn: x.(*tls.Conn), addr: addr, refused: l.refused}, nil
}

// conn tells of a handshake that fails. One goroutine reads.
type conn struct {
	*tls.Conn
	addr    string // of the other end
	refused Refused
	got     bool // something has been read, so both ends trust each other
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	switch {
	case n > 0:
		c.got = true
	case err != nil && !c.got:
		tell(c.refused, c.addr, err)
	}
	return n, err
}
