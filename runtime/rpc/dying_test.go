package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/iwarp"
	dat "godat/runtime"
)

// mortal is a connection that dies when so many octets have gone one way.
type mortal struct {
	net.Conn
	reads bool // the way
	left  *atomic.Int64
}

var errDead = errors.New("dead")

// spend cuts p to the octets that are left.
func (m mortal) spend(p []byte) []byte {
	left := m.left.Add(-int64(len(p)))
	if left >= 0 {
		return p
	}
	return p[:max(left+int64(len(p)), 0)]
}

func (m mortal) Write(p []byte) (n int, err error) {
	if m.reads {
		return m.Conn.Write(p)
	}
	some := m.spend(p)
	if n, err = m.Conn.Write(some); len(some) < len(p) {
		err = errors.Join(errDead, m.Close())
	}
	return n, err
}

func (m mortal) Read(p []byte) (n int, err error) {
	if n, err = m.Conn.Read(p); !m.reads {
		return n, err
	}
	if some := m.spend(p[:n]); len(some) < n {
		return len(some), errors.Join(errDead, m.Close())
	}
	return n, err
}

// A client that dies at any octet of its start-up, its call or the answer hears an error, and
// the server goes on.
func TestAClientMayDieAtAnyOctet(t *testing.T) {
	server := open(t, "iwarp:127.0.0.1")
	var runs atomic.Int32
	var memory *dat.LMR
	s := serve(t, server, Config{}, 2, func(r *Request) {
		runs.Add(1)
		_ = r.Write(memory.Segment(0, r.SinkLen()), 0)
		echo(r)
	})
	memory = alloc(t, s.PZ(), 8)
	honest := dial(t, server, s, Config{})
	for _, reads := range []bool{false, true} {
		for octets, whole := int64(0), false; !whole; octets++ {
			left := &atomic.Int64{}
			left.Store(octets)
			provider := iwarp.New(iwarp.Config{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
				return mortal{c, reads, left}, err
			}})
			ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1", dat.WithProvider(provider))
			require.NoError(t, err)
			before := runs.Load()
			if c, err := Dial(within(t), ia, s.Addr(), Config{Patience: time.Minute}); err == nil {
				mine, err := c.PZ().Alloc(8, dat.AllPrivileges)
				require.NoError(t, err)
				got, err := c.Call(within(t), Call{Payload: []byte("alive"), Sink: mine.Remote(0, 8)}, nil)
				whole = err == nil
				var failed *CallError
				if whole {
					assert.Equal(t, "alive", string(got))
				} else if assert.ErrorAs(t, err, &failed) {
					require.ErrorIs(t, err, ErrEnded, "at octet %d", octets)
				}
				require.NoError(t, mine.Free())
				require.NoError(t, c.Close())
			}
			require.NoError(t, within(t).Err())
			require.NoError(t, ia.Close())
			assert.LessOrEqual(t, runs.Load(), before+1)
			_, err = honest.Call(within(t), Call{}, nil)
			require.NoError(t, err)
			require.Less(t, octets, int64(2000))
			if whole {
				assert.Greater(t, octets, int64(100), "a start-up and a call have more")
			}
		}
	}
}
