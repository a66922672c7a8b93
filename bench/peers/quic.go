package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"godat/bench/lane"
)

const protocol = "godat-bench"

// quicLanes are lanes of one QUIC stream over loopback UDP.
func quicLanes() []transport {
	return bothWays("QUIC stream", "quic-go: a byte stream, always encrypted, with congestion and flow control; one goroutine at a time may write; "+
		"loopback UDP with the socket buffers that the system grants: system calls, and copies into and out of the kernel", openQUIC)
}

// quicPair is a connection between two sockets.
type quicPair struct {
	server, client *quic.Transport
	cfg            quic.Config
	conn, peer     *quic.Conn // the ends that dialed and accepted
}

// openQUIC connects over loopback, and opens a stream.
func openQUIC(size, depth int, roundTrip bool) (lane.Lane, error) {
	p := &quicPair{server: new(quic.Transport), client: new(quic.Transport)}
	a, b, err := p.open(context.Background())
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return newByteStream(a, b, size, depth, roundTrip, p.close), nil
}

// open connects, and opens a stream.
func (p *quicPair) open(ctx context.Context) (a, b *quic.Stream, err error) {
	for _, t := range []*quic.Transport{p.server, p.client} {
		if t.Conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			return nil, nil, err
		}
	}
	server, client, err := certificates()
	if err != nil {
		return nil, nil, err
	}
	p.cfg.MaxIdleTimeout = time.Hour // a lane is idle while others take their turns
	ln, err := p.server.Listen(server, &p.cfg)
	if err != nil {
		return nil, nil, err
	}
	if p.conn, err = p.client.Dial(ctx, ln.Addr(), client, &p.cfg); err != nil {
		return nil, nil, err
	}
	if p.peer, err = ln.Accept(ctx); err != nil {
		return nil, nil, err
	}
	return openStream(ctx, p.conn, p.peer)
}

// close closes both ends and their sockets.
func (p *quicPair) close() (err error) {
	for _, c := range []*quic.Conn{p.conn, p.peer} {
		if c != nil {
			err = errors.Join(err, c.CloseWithError(0, ""))
		}
	}
	for _, t := range []*quic.Transport{p.client, p.server} {
		if t.Conn != nil {
			err = errors.Join(err, t.Close(), t.Conn.Close())
		}
	}
	return err
}

// openStream opens a stream and returns both its ends. The peer learns of a stream by its
// first byte.
func openStream(ctx context.Context, conn, peer *quic.Conn) (a, b *quic.Stream, err error) {
	if a, err = conn.OpenStreamSync(ctx); err != nil {
		return nil, nil, err
	}
	if _, err = a.Write([]byte{0}); err != nil {
		return nil, nil, err
	}
	if b, err = peer.AcceptStream(ctx); err != nil {
		return nil, nil, err
	}
	_, err = b.Read(make([]byte, 1))
	return a, b, err
}

// certificates makes a key for a server at 127.0.0.1, and a client that trusts it alone.
func certificates() (server, client *tls.Config, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{protocol}}
	client = &tls.Config{RootCAs: roots, NextProtos: []string{protocol}}
	return server, client, nil
}
