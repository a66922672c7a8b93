package rpc_test

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

	"godat/hw/iwarp"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Calls go over TLS when the adapter's provider does: server and client are as always. Here
// one certificate serves both ends, and is its own authority.
func Example_overTLS() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := certified("godat.example")
	if err != nil {
		fmt.Println(err)
		return
	}
	secure := iwarp.New(iwarp.Config{
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
		},
		Listen: func(addr string) (net.Listener, error) { return tls.Listen("tcp", addr, config) },
	})
	ia, err := dat.Open(ctx, "iwarp:127.0.0.1", dat.WithProvider(secure))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ia.Close()
	server, err := rpc.Listen(ctx, ia, "127.0.0.1:0", rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	go sayYes(ctx, server)
	client, err := rpc.Dial(ctx, ia, server.Addr(), rpc.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := client.Call(ctx, rpc.Call{Payload: []byte("are you there?")}, nil)
	fmt.Printf("%s %v\n", got, err)

	plain, err := dat.Open(ctx, "iwarp:127.0.0.1") // a peer without TLS
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = rpc.Dial(ctx, plain, server.Addr(), rpc.Config{})
	fmt.Println("a stranger is let in:", err == nil)
	fmt.Println(errors.Join(plain.Close(), client.Close(), server.Shutdown(ctx)))
	// Output:
	// yes <nil>
	// a stranger is let in: false
	// <nil>
}

// certified returns a configuration for either end, which trusts only its own certificate.
func certified(name string) (*tls.Config, error) {
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
