package runtime_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/iwarp"
	dat "godat/runtime"
)

// Two ends talk iWARP over TLS and authenticate each other. Here one certificate serves
// both, and is its own authority. Without the provider of its own, the same program
// speaks plain TCP.
func ExampleWithProvider_overTLS() {
	if err := helloOverTLS(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// a stranger is let in: false
	// "hello" came back
}

func helloOverTLS() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := selfSigned("godat.example")
	if err != nil {
		return err
	}
	provider := iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
		},
		Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, config) },
	})
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1", dat.WithProvider(provider))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ia.Close()) }()
	server, err := ia.Listen(ctx, "127.0.0.1:0", dat.ConnConfig{})
	if err != nil {
		return err
	}
	echoed := make(chan error, 1)
	go func() { echoed <- echoOne(server) }()

	stranger, err := dat.Open(ctx, "iwarp:127.0.0.1") // a peer that speaks plain TCP
	if err != nil {
		return err
	}
	_, err = stranger.Dial(ctx, server.Addr(), dat.ConnConfig{})
	fmt.Println("a stranger is let in:", err == nil)
	if err = stranger.Close(); err != nil {
		return err
	}

	client, err := ia.Dial(ctx, server.Addr(), dat.ConnConfig{})
	if err != nil {
		return err
	}
	b := client.Buffer()
	fmt.Fprint(b, "hello")
	if err = client.Send(b); err != nil {
		return err
	}
	ev := <-client.Events()
	if ev.Err() == nil {
		fmt.Printf("%q came back\n", client.Message(ev).Bytes())
	}
	return errors.Join(ev.Err(), <-echoed)
}

// echoOne accepts a connection and sends the first message back.
func echoOne(l *dat.Listener) error {
	if _, err := l.Accept(ep.RequestOf(<-l.Requests()), nil); err != nil {
		return err
	}
	for ev := range l.Events() {
		switch {
		case ev.Err() != nil:
			return ev.Err()
		case ev.Op == hw.OpRecv:
			c := dat.ConnOf(ev)
			return c.Send(c.Message(ev))
		}
	}
	return nil
}

// selfSigned returns a configuration for either side. It trusts only the certificate
// that it shows.
func selfSigned(name string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ServerName:   name, RootCAs: trusted,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}, nil
}
