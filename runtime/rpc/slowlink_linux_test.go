package rpc

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/iwarp"
	"godat/mem"
	dat "godat/runtime"
)

// slowLink is a link that carries so many bytes a second each way, and holds little: what one end has sent
// and the other has not got stays in the socket of the end that has sent it.
type slowLink struct {
	ln      net.Listener
	rate    int // bytes a second
	running sync.WaitGroup
	mu      sync.Mutex
	socks   []net.Conn
	closed  bool
}

const held = 4 << 10 // in each socket of the link

func newSlowLink(t *testing.T, server string, rate int) *slowLink {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &slowLink{ln: ln, rate: rate}
	l.running.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if !assert.NoError(t, err) || !l.keep(near, far) {
				return
			}
			l.running.Go(func() { l.carry(near, far) })
			l.running.Go(func() { l.carry(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		l.keep()
		l.running.Wait()
	})
	return l
}

// keep keeps sockets for the end, which is a call without any.
func (l *slowLink) keep(socks ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range socks {
		_ = c.(*net.TCPConn).SetReadBuffer(held)
		_ = c.(*net.TCPConn).SetWriteBuffer(held)
	}
	l.socks, l.closed = append(l.socks, socks...), l.closed || len(socks) == 0
	if l.closed {
		for _, c := range l.socks {
			_ = c.Close()
		}
	}
	return !l.closed
}

// carry carries one direction at the link's rate.
func (l *slowLink) carry(to, from net.Conn) {
	defer to.Close()
	const each = 20 * time.Millisecond
	b, tick := make([]byte, l.rate/int(time.Second/each)), time.NewTicker(each)
	defer tick.Stop()
	for range tick.C {
		n, err := from.Read(b)
		if n > 0 {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// overSlowLink opens an adapter over whose connections little is in the sockets.
func overSlowLink(t *testing.T) *dat.IA {
	ia, err := dat.Open(t.Context(), "iwarp:127.0.0.1", dat.WithProvider(iwarp.New(iwarp.Config{Params: map[string]string{"buffer": "16384"}})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return ia
}

// Four long calls whose time is over have pieces on a slow link that take longer than Patience: they are
// under way all the time, so no end blames the other, and a short call has its answer.
func TestALateLongCallOnASlowLinkLeavesTheConnectionToOthers(t *testing.T) {
	const rate, long = 40 << 10, 256 << 10
	for name, call := range map[string]func(m *mem.LMR) Call{
		"read by the server":    func(m *mem.LMR) Call { return Call{Method: 1, Source: m.Remote(0, long)} },
		"written by the server": func(m *mem.LMR) Call { return Call{Method: 1, Sink: m.Remote(0, long)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Patience: time.Second, Stall: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
			ia := overSlowLink(t)
			s := serve(t, ia, cfg, 8, func(r *Request) {
				b := make([]byte, long)
				switch {
				case r.SourceLen() > 0:
					_ = r.ReadBytes(b, 0)
				case r.SinkLen() > 0:
					_ = r.WriteBytes(b, 0)
				}
				_ = r.Reply(nil)
			})
			c, err := Dial(within(t), ia, newSlowLink(t, s.Addr(), rate).ln.Addr().String(), cfg)
			require.NoError(t, err)
			defer c.Close()
			var late sync.WaitGroup
			for range 4 {
				late.Go(func() {
					m, err := c.PZ().Alloc(long, hw.AllPrivileges)
					if !assert.NoError(t, err) {
						return
					}
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					defer cancel()
					_, err = c.Call(ctx, call(m), nil)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.NotErrorIs(t, err, ErrEnded)
					assert.NoError(t, m.Free())
				})
			}
			late.Wait()
			_, err = c.Call(within(t), Call{}, nil)
			require.NoError(t, err, "the connection is up")
		})
	}
}

// chat sends messages that say nothing, until the connection has ended.
func chat(c *dat.Conn) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.Endpoint.State() == ep.Connected {
		_ = c.SendBytes(encoded(header{kind: kindCredit}))
		<-tick.C
	}
}

func TestAServerThatTalksAndNeverAnswersHoldsItsCallerForStall(t *testing.T) {
	ia := overSlowLink(t)
	cfg := Config{}
	require.NoError(t, cfg.complete("", ia.Attr()))
	settings := cfg.conn()
	settings.Batches, settings.Apart = false, true
	ln, err := ia.Listen(t.Context(), ":0", settings)
	require.NoError(t, err)
	defer ln.Close()
	var talking sync.WaitGroup
	talking.Go(func() {
		c, err := ln.Accept(ep.RequestOf(<-ln.Requests()), cfg.hello())
		if assert.NoError(t, err) {
			_, _ = heard(t, c)
			chat(c)
			assert.NoError(t, c.Close())
		}
	})
	c, err := Dial(within(t), ia, ln.Addr(), Config{Patience: 50 * time.Millisecond, Stall: 500 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = c.Call(ctx, Call{SinkBytes: make([]byte, 8)}, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond, "octets move")
	assert.NoError(t, c.Close())
	talking.Wait()
}

func TestAClientThatTalksAndNeverAnswersHoldsAHandlerForStall(t *testing.T) {
	onEachStalled(t, func(t *testing.T, server, client *dat.IA, _ func() bool) {
		read := make(chan error, 1)
		s := serve(t, server, Config{Stall: 500 * time.Millisecond, Patience: 50 * time.Millisecond}, 1, func(r *Request) {
			read <- r.ReadBytes(make([]byte, 8), 0)
			_ = r.Reply(nil) // the connection has ended
		})
		c := stingy(t, client, s, 0)
		mine, err := c.Alloc(8, hw.AllPrivileges)
		require.NoError(t, err)
		source, err := mine.Remote(0, 8).MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, c.SendBytes(encoded(header{kind: kindCall, flags: flagSource, call: 1 << 16, timeout: 100}, source...)))
		chat(c)
		require.Error(t, <-read)
	})
}
