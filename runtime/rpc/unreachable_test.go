package rpc

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
	dat "godat/runtime"
)

// A name that does not resolve and a network that is down are no reason to give up: the name may
// come, and the network come back.
func TestAClientGoesOnWhileItsServerIsUnreachable(t *testing.T) {
	for name, failure := range map[string]error{
		"no such name": &net.DNSError{Err: "no such host", Name: "server", IsNotFound: true},
		"no route":     &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH},
	} {
		t.Run(name, func(t *testing.T) {
			var failures atomic.Int32
			device := iwarp.New(iwarp.Config{Dial: func(ctx context.Context, address string) (net.Conn, error) {
				if failures.Add(-1) >= 0 {
					return nil, failure
				}
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			}})
			ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1", dat.WithProvider(device))
			require.NoError(t, err)
			listen := func(at string) *Server {
				s, err := Listen(t.Context(), ia, at, Config{})
				require.NoError(t, err)
				go handle(s, 1, echo)
				return s
			}
			s := listen(":0")
			failures.Store(3)
			c, err := Dial(within(t), ia, s.Addr(), Config{Await: true, Redial: time.Millisecond})
			require.NoError(t, err, "after %v", failure)
			_, err = c.Call(within(t), Call{}, nil)
			require.NoError(t, err)

			at := s.Addr()
			failures.Store(3)
			require.NoError(t, s.Close())
			s = listen(at)
			_, err = c.Call(within(t), Call{Idempotent: true}, nil)
			require.NoError(t, err, "after %v", failure)
			assert.Negative(t, failures.Load())
			require.NoError(t, c.Close())
			require.NoError(t, s.Close())
			require.NoError(t, ia.Close())
		})
	}
}
