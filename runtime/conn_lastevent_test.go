package runtime

import (
	"errors"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// posters are the ways to post on a connection's endpoint. Each returns how many posts
// were taken.
var posters = map[string]func(c *Conn, m *mem.LMR, cookie uint64) (int, error){
	"an RDMA write": func(c *Conn, m *mem.LMR, cookie uint64) (int, error) {
		return taken(c.Endpoint.PostRDMAWrite(cookie, 0, mem.RemoteSegment{Addr: 4096, Len: 8, Context: 1}, m.Segment(0, 8)))
	},
	"two segments": func(c *Conn, m *mem.LMR, cookie uint64) (int, error) {
		return taken(c.Endpoint.PostSend(cookie, 0, m.Segment(0, 8), m.Segment(8, 8)))
	},
	"a batch": func(c *Conn, m *mem.LMR, cookie uint64) (int, error) {
		d := ep.DTO{Op: hw.OpWrite, Cookie: cookie, Segment: m.Segment(0, 8), Remote: mem.RemoteSegment{Addr: 4096, Len: 8, Context: 1}}
		return c.Endpoint.PostBatch([]ep.DTO{d, d, d})
	},
	"a receive": func(c *Conn, m *mem.LMR, cookie uint64) (int, error) {
		return taken(c.Endpoint.PostRecv(cookie, 0, m.Segment(0, 8)))
	},
	"receives": func(c *Conn, m *mem.LMR, cookie uint64) (int, error) {
		d := ep.DTO{Cookie: cookie, Segment: m.Segment(0, 8)}
		return c.Endpoint.PostRecvBatch([]ep.DTO{d, d})
	},
}

func taken(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return 1, nil
}

// The peer breaks the connection while this end posts: each post that was taken has its
// event, and the event of the end is the last one.
func TestNothingComesBehindTheEndOfAConnection(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		for round := range 12 {
			cfg := ConnConfig{Depth: 64, OwnReceives: round%2 == 0, Attr: &ep.Attr{MaxRecvDTOs: 200, MaxRequestDTOs: 200}}
			l, client, server := both(t, ia, cfg)
			m, err := client.Alloc(64, hw.LocalRead|hw.LocalWrite)
			require.NoError(t, err)
			var promised atomic.Int64
			var posting sync.WaitGroup
			for _, post := range posters {
				posting.Go(func() {
					for cookie := range uint64(1 << 20) {
						n, err := post(client, m, cookie)
						promised.Add(int64(n))
						if err == nil {
							continue
						}
						if errors.Is(err, hw.ErrInsufficientResources) {
							goruntime.Gosched()
							continue
						}
						assert.ErrorIs(t, err, hw.ErrInvalidState)
						return
					}
				})
			}
			if round%3 == 0 {
				require.NoError(t, client.Endpoint.Disconnect(ep.Abrupt))
			} else {
				require.NoError(t, server.Close())
			}
			events := int64(0)
			for ev := nextEvent(t, client.Events()); !ev.Ended(); ev = nextEvent(t, client.Events()) {
				if ev.Cookie&connCookie == 0 {
					events++
				}
			}
			posting.Wait()
			for name, post := range posters {
				_, err := post(client, m, 0)
				requireCode(t, err, hw.InvalidState, hw.StateEPDisconnected)
				assert.Empty(t, client.Events(), name)
			}
			require.Equal(t, promised.Load(), events, "posts and events before the end")
			require.NoError(t, client.Close())
			require.NoError(t, l.Close())
		}
	})
}
