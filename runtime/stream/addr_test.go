package stream

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// The listener is at all addresses and is dialed by a name: the ends of its connections
// are at one address each, as those of a net.Conn.
func TestTheAddressesOfAConnectionAreItsOwn(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia, err := dat.Open(t.Context(), provider)
			require.NoError(t, err)
			defer func() { require.NoError(t, ia.Close()) }()
			ln, err := Listen(t.Context(), ia, "0.0.0.0:0", Config{})
			require.NoError(t, err)
			defer ln.Close()
			_, port, err := net.SplitHostPort(ln.Addr().String())
			require.NoError(t, err)
			dialed := make(chan net.Conn, 1)
			go func() {
				c, err := (&Dialer{IA: ia}).Dial("", "localhost:"+port)
				assert.NoError(t, err)
				dialed <- c
			}()
			server, err := ln.Accept()
			require.NoError(t, err)
			defer server.Close()
			client := <-dialed
			defer client.Close()
			assert.Equal(t, client.RemoteAddr(), server.LocalAddr())
			assert.Equal(t, client.LocalAddr(), server.RemoteAddr())
			_, at, err := net.SplitHostPort(client.RemoteAddr().String())
			require.NoError(t, err)
			assert.Equal(t, port, at)
			if provider == "loop" { // which has names of its own
				return
			}
			for _, a := range []net.Addr{client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr()} {
				p, err := netip.ParseAddrPort(a.String())
				require.NoError(t, err)
				assert.True(t, p.Addr().IsLoopback(), a)
			}
		})
	}
}

func TestAListenerWithoutAnAddressHasAPort(t *testing.T) {
	for _, provider := range adapters {
		t.Run(provider, func(t *testing.T) {
			r := newRig(t, provider, Config{})
			ln, err := Listen(t.Context(), r.ia, "", Config{})
			require.NoError(t, err)
			defer func() { require.NoError(t, ln.Close()) }()
			_, port, err := net.SplitHostPort(ln.Addr().String())
			require.NoError(t, err)
			assert.NotEqual(t, "0", port)
		})
	}
}
