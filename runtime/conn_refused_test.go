package runtime

import (
	"flag"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// A call that takes a buffer takes it also when it is refused, and the pool has it then.
func TestARefusedMessageGivesItsBufferBack(t *testing.T) {
	calls := map[string]func(c *Conn, b *mem.Buffer) error{
		"Send": (*Conn).Send,
		"Queue": func(c *Conn, b *mem.Buffer) error {
			for first := c.Buffer(); first != nil; first = c.Buffer() { // until the outbox is full of what is refused
				first.Resize(33)
				if err := c.Queue(first); err != nil {
					c.Release(b)
					return err
				}
			}
			return c.Queue(b)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l, client, server := both(t, ia, ConnConfig{Depth: 3, Message: 64, Attr: &ep.Attr{MaxRequestDTOs: 1}, Setup: func(c *Conn) ([]byte, error) {
					return nil, c.Endpoint.Modify(ep.Param{Attr: ep.Attr{MaxMessageSize: 32}}, "MaxMessageSize")
				}})
				for range 4 {
					b := client.Buffer()
					require.NotNil(t, b, "the refused ones came back")
					b.Resize(33)
					require.ErrorIs(t, call(client, b), hw.ErrLength)
					client.Outbox().Reset()
				}
				say(t, client, "short")
				require.Equal(t, "short", hear(t, server))
				require.NoError(t, client.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}

// Of all numbers that a program may choose as the cookie of an operation of its own, on the
// endpoint of a connection, each comes back in one event, or is refused at the post.
func TestEachCookieOnAConnectionsEndpointComesBackOrIsRefused(t *testing.T) {
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	require.NoError(t, flag.Set("rapid.checks", "100"))
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		memory, err := client.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		to, err := server.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		segment, remote := memory.Segment(0, 8), to.Remote(0, 8)
		e := client.Endpoint
		posts := map[string]func(cookie uint64) error{
			"send":  func(cookie uint64) error { return e.PostSend(cookie, hw.Default, segment) },
			"write": func(cookie uint64) error { return e.PostRDMAWrite(cookie, hw.Default, remote, segment) },
			"read":  func(cookie uint64) error { return e.PostRDMARead(cookie, hw.Default, remote, segment) },
			"batch": func(cookie uint64) error {
				_, err := e.PostBatch([]ep.DTO{{Op: hw.OpWrite, Cookie: cookie, Segment: segment, Remote: remote}})
				return err
			},
			"outbox": func(cookie uint64) error {
				defer client.Outbox().Reset()
				_ = client.Outbox().Add(ep.DTO{Op: hw.OpRead, Cookie: cookie, Segment: segment, Remote: remote})
				return client.Outbox().Flush()
			},
		}
		refused := map[string]func(cookie uint64) error{
			"receive": func(cookie uint64) error { return e.PostRecv(cookie, hw.Default, segment) },
			"receives": func(cookie uint64) error {
				_, err := e.PostRecvBatch([]ep.DTO{{Cookie: cookie, Segment: segment}, {Cookie: cookie, Segment: segment}})
				return err
			},
			"add":        func(cookie uint64) error { return e.PostFetchAdd(cookie, hw.Default, 1, remote, segment) },
			"swap":       func(cookie uint64) error { return e.PostCompareSwap(cookie, hw.Default, 1, 2, remote, segment) },
			"immediate":  func(cookie uint64) error { return e.PostRDMAWriteImmediate(cookie, hw.Default, 1, remote, segment) },
			"invalidate": func(cookie uint64) error { return e.PostSendInvalidate(cookie, hw.Default, 1, segment) },
			"bind": func(cookie uint64) error {
				_, err := e.PostBind(cookie, hw.Default, nil, mem.Binding{})
				return err
			},
			"to a window": func(cookie uint64) error { return e.PostRDMAReadToRMR(cookie, hw.Default, remote, remote) },
		}
		plain := slices.Sorted(maps.Keys(posts))
		maps.Copy(refused, posts)
		all := slices.Sorted(maps.Keys(refused))
		cookies := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.Uint64(), func(n uint64) uint64 { return n | connCookie }),
			rapid.SampledFrom([]uint64{0, connCookie, sendCookie, 1<<64 - 1, connCookie | 1<<32, connCookie | 1<<32 | 1, sendCookie | 1<<32}))
		rapid.Check(t, func(r *rapid.T) {
			cookie := cookies.Draw(r, "cookie")
			if cookie>>63 != 0 {
				err := refused[rapid.SampledFrom(all).Draw(r, "refused")](cookie)
				requireCode(t, err, hw.InvalidParameter, hw.NoSubtype)
				require.ErrorContains(t, err, strconv.FormatUint(cookie, 16))
				return
			}
			name := rapid.SampledFrom(plain).Draw(r, "post")
			require.NoError(t, posts[name](cookie), name)
			ev := nextEvent(t, client.Events())
			require.Equal(t, cookie, ev.Cookie)
			require.NoError(t, ev.Err())
			require.Nil(t, client.Message(ev))
			if name == "send" {
				server.Release(server.Message(nextEvent(t, server.Events())))
			}
		})
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}

// A server may register memory for each request of a connection that lives long.
func TestAConnectionForgetsRegionsThatAreFreed(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l, client, server := both(t, ia, ConnConfig{Depth: 2, Message: 64})
		var live []*mem.LMR
		for range 500 {
			if len(live) > 0 && rand.IntN(2) == 0 {
				require.NoError(t, live[0].Free())
				live = live[1:]
				continue
			}
			made, err := server.Register(make([]byte, 64), hw.RemoteRead)
			if rand.IntN(2) == 0 {
				require.NoError(t, made.Free())
				made, err = server.Alloc(64, hw.RemoteRead)
			}
			require.NoError(t, err)
			live = append(live, made)
			require.Equal(t, len(live), server.memory.Len())
		}
		require.NoError(t, server.Close())
		assert.Zero(t, server.memory.Len())
		for _, l := range live {
			require.Error(t, client.Endpoint.PostSend(1, hw.Default, l.Segment(0, 64)), "the region has ended, and soon the connection")
			l.Bytes()[63] = 1
			require.NoError(t, l.Free())
			require.NoError(t, l.Free(), "again")
			assert.Nil(t, l.Bytes())
		}
		require.NoError(t, client.Close())
		require.NoError(t, l.Close())
	})
}
