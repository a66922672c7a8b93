package mistakes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"godat/hw"
	"godat/hw/event"
	"godat/hw/iwarp"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// ofTCP are mistakes that only a provider with a real network has.
var ofTCP = []mistake{
	{"a dial to an HTTP server", "TCP is connected", "speaks another protocol", hw.ErrTimeout, func(d *desk) error {
		ctx, cancel := context.WithTimeout(d.ctx, 200*time.Millisecond)
		defer cancel()
		_, err := d.ia.Dial(ctx, d.httpServer((*httptest.Server).Start).Listener.Addr().String(), dat.ConnConfig{})
		return err
	}},
	{"a dial to a TLS server", "hung up", "TLS", event.Error(event.NonPeerRejected), func(d *desk) error {
		_, err := d.ia.Dial(d.ctx, d.httpServer((*httptest.Server).StartTLS).Listener.Addr().String(), dat.ConnConfig{})
		return err
	}},
	{"a dial without TLS to a listener with TLS", "hung up", "TLS", event.Error(event.NonPeerRejected), func(d *desk) error {
		ln := must(d.overTLS().Listen(d.ctx, d.at, dat.ConnConfig{}))
		_, err := d.ia.Dial(d.ctx, ln.Addr(), dat.ConnConfig{})
		return err
	}},
	{"a dial with TLS to a listener without TLS", "the listener ended the handshake of this end's iwarp.Config.Dial", "TLS", event.Error(event.NonPeerRejected), func(d *desk) error {
		_, err := d.overTLS().Dial(d.ctx, d.ln.Addr(), dat.ConnConfig{})
		return err
	}},
	{"a server of rpc that is dialed by Conn", "a server of package rpc listens there", "rpc.Dial makes", event.Error(event.PeerRejected), func(d *desk) error {
		s := must(rpc.Listen(d.ctx, d.ia, d.at, rpc.Config{}))
		d.Cleanup(func() { _ = s.Close() })
		_, err := d.ia.Dial(d.ctx, s.Addr(), dat.ConnConfig{})
		return err
	}},
	{"a listener of stream that is dialed by Conn", "a listener of package stream listens there", "stream.Dialer makes", event.Error(event.PeerRejected), func(d *desk) error {
		ln := must(stream.Listen(d.ctx, d.ia, d.at, stream.Config{}))
		d.Cleanup(func() { _ = ln.Close() })
		go func() { _, _ = ln.Accept() }()
		_, err := d.ia.Dial(d.ctx, ln.Addr().String(), dat.ConnConfig{})
		return err
	}},
	{"a server of rpc that is dialed by stream", "a server of package rpc listens there", "rpc.Dial makes", stream.ErrProtocol, func(d *desk) error {
		s := must(rpc.Listen(d.ctx, d.ia, d.at, rpc.Config{}))
		d.Cleanup(func() { _ = s.Close() })
		_, err := (&stream.Dialer{IA: d.ia}).DialContext(d.ctx, "tcp", s.Addr())
		return err
	}},
	{"an address that is not this machine's", "192.0.2.7", "not one of this machine", hw.ErrInvalidAddress, func(d *desk) error {
		_, err := d.ia.Listen(d.ctx, "192.0.2.7:0", dat.ConnConfig{})
		return err
	}},
	{"an rpc client of a Conn's listener", "did not answer", "has not accepted", hw.ErrTimeout, func(d *desk) error {
		ctx, cancel := context.WithTimeout(d.ctx, 200*time.Millisecond)
		defer cancel()
		_, err := rpc.Dial(ctx, d.ia, d.ln.Addr(), rpc.Config{})
		return err
	}},
}

// httpServer is a server of HTTP on this machine, which start starts.
func (d *desk) httpServer(start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	start(s)
	d.Cleanup(s.Close)
	return s
}

// overTLS is an adapter whose connections are those of TLS.
func (d *desk) overTLS() *dat.IA {
	d.Helper()
	s := d.httpServer((*httptest.Server).StartTLS) // whose certificate is its own authority
	cfg := &tls.Config{Certificates: s.TLS.Certificates, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	cfg.RootCAs.AddCert(s.Certificate())
	return open(d.T, "iwarp:127.0.0.1", dat.WithProvider(iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", addr)
		},
		Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, cfg) },
	})))
}
