package rpc

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	dat "godat/runtime"
)

// bareServer accepts a client, whom it tells of a server, and returns its end.
func bareServer(t *testing.T, ia *dat.IA, told hello, cfg Config) (*dat.Conn, *Client) {
	t.Helper()
	ln, err := ia.Listen(t.Context(), ":0", dat.ConnConfig{Depth: 64, Apart: true})
	require.NoError(t, err)
	accepted := make(chan *dat.Conn, 1)
	go func() {
		c, _ := ln.Accept(ep.RequestOf(<-ln.Requests()), told.encode())
		accepted <- c
	}()
	c, err := Dial(within(t), ia, ln.Addr(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Close())
		assert.NoError(t, ln.Close())
	})
	return <-accepted, c
}

// heard receives a message, and copies it.
func heard(t *testing.T, c *dat.Conn) (h header, payload []byte) {
	t.Helper()
	b, err := c.Receive(within(t))
	require.NoError(t, err)
	defer c.Release(b)
	m, err := parse(b.Bytes())
	require.NoError(t, err)
	return m.header, append([]byte(nil), m.payload...)
}

// called makes calls whose payloads are their numbers.
func called(ctx context.Context, c *Client, n int) <-chan error {
	failed := make(chan error, n)
	for i := range n {
		go func() {
			_, err := c.Call(ctx, Call{Payload: []byte{byte(i)}}, nil)
			failed <- err
		}()
	}
	return failed
}

// sent waits until the client has posted so many messages and has so many more that wait.
func sent(t *testing.T, c *Client, posted uint32, waiting int) {
	t.Helper()
	require.Eventually(t, func() bool {
		c.now.link.mu.Lock()
		defer c.now.link.mu.Unlock()
		return c.now.link.sent == posted && len(c.now.link.waiting) == waiting
	}, time.Minute, time.Millisecond)
}

func TestAClientSendsNoMoreThanTheServerHasReceivesFor(t *testing.T) {
	const receives, calls = 4, 9
	onEach(t, func(t *testing.T, ia *dat.IA) {
		server, c := bareServer(t, ia, hello{calls: 100, receives: receives, message: 64}, Config{Calls: calls})
		failed := called(t.Context(), c, calls)
		sent(t, c, receives-1, calls-receives+1)
		for took := uint32(receives - 1); took <= calls; took += receives - 1 {
			for range receives - 1 {
				h, _ := heard(t, server)
				require.EqualValues(t, kindCall, h.kind)
			}
			require.NoError(t, server.SendBytes(encoded(header{kind: kindCredit, taken: took})))
			sent(t, c, min(took+receives-1, calls), max(calls-int(took)-receives+1, 0))
		}
		require.NoError(t, server.Close())
		for range calls {
			require.ErrorIs(t, <-failed, ErrEnded)
		}
	})
}

func TestACallThatWaitsForAReceiveHasNotRunWhenItsContextEnds(t *testing.T) {
	const receives = 3
	onEach(t, func(t *testing.T, ia *dat.IA) {
		server, c := bareServer(t, ia, hello{calls: 100, receives: receives, message: 64}, Config{Calls: receives})
		var took uint32
		answer := func() (call uint32) {
			h, payload := heard(t, server)
			took++
			require.NoError(t, server.SendBytes(encoded(header{kind: kindAnswer, call: h.call, taken: took}, payload...)))
			return h.call
		}
		ran := called(t.Context(), c, receives-1)
		sent(t, c, receives-1, 0)
		ctx, cancel := context.WithCancel(t.Context())
		waited := called(ctx, c, 1)
		sent(t, c, receives-1, 1)
		cancel()
		var failed *CallError
		require.ErrorAs(t, <-waited, &failed)
		assert.False(t, failed.MayHaveRun)
		require.ErrorIs(t, failed, context.Canceled)
		sent(t, c, receives-1, 0)
		var slots uint32
		for range receives - 1 {
			slots |= 1 << (answer() & slotMask)
			require.NoError(t, <-ran)
		}
		for range receives { // each of the slots once
			again := called(t.Context(), c, 1)
			call := answer()
			require.NoError(t, <-again)
			if slots>>(call&slotMask)&1 != 0 {
				assert.EqualValues(t, 2, call>>16)
			} else {
				assert.EqualValues(t, 1, call>>16, "the server has seen no call of this slot")
			}
		}
	})
}

// A peer that only cancels hears all the same that its messages were taken.
func TestAnEndThatHasNothingToSendReportsWhatItTook(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		cfg := Config{Calls: 8}
		s := serve(t, ia, cfg, 1, silent)
		require.NoError(t, cfg.complete("", ia.Attr()))
		settings := cfg.conn()
		settings.Batches = false
		c, err := ia.Dial(within(t), s.Addr(), settings)
		require.NoError(t, err)
		for round := range uint32(3) {
			half := uint32(cfg.receives() / 2)
			for range half {
				require.NoError(t, c.SendBytes(encoded(header{kind: kindCancel, taken: round})))
			}
			h, _ := heard(t, c)
			assert.Equal(t, header{kind: kindCredit, taken: (round + 1) * half}, h)
		}
		require.NoError(t, c.Close())
	})
}

// Answers that wait for the client's receives go out before the connections end.
func TestAShutdownWaitsForAnswersThatWait(t *testing.T) {
	const calls = 5
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var came atomic.Int32
		s := serve(t, ia, Config{Calls: calls}, 1, func(r *Request) {
			came.Add(1)
			echo(r)
		})
		c, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: hello{calls: calls, receives: 3, message: 64}.encode()})
		require.NoError(t, err)
		for i := range uint32(calls) {
			require.NoError(t, c.SendBytes(encoded(header{kind: kindCall, call: 1<<16 | i})))
		}
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return came.Load() == calls && s.taken == 0 && s.active == 1
		}, time.Minute, time.Millisecond)
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(within(t)) }()
		for i := range uint32(calls) {
			h, _ := heard(t, c)
			require.EqualValues(t, kindAnswer, h.kind)
			if i < calls-1 {
				require.NoError(t, c.SendBytes(encoded(header{kind: kindCredit, taken: i + 1})))
			}
		}
		h, _ := heard(t, c)
		require.EqualValues(t, kindEnd, h.kind)
		require.NoError(t, <-down)
		_, err = c.Receive(within(t))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, c.Close())
	})
}

// A call that waits for a receive of the server's has not been sent, so it has not run.
func TestACallThatWasNotSentBeforeTheEndHasNotRun(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for _, call := range []Call{{}, {SinkBytes: make([]byte, 8)}} {
			server, c := bareServer(t, ia, hello{calls: 4, receives: 2, message: 64}, Config{})
			first := called(within(t), c, 1)
			sent(t, c, 1, 0)
			waits := make(chan error, 1)
			go func() {
				_, err := c.Call(within(t), call, nil)
				waits <- err
			}()
			sent(t, c, 1, 1)
			require.NoError(t, server.Close())
			for mayHaveRun, failed := range map[bool]<-chan error{true: first, false: waits} {
				err := <-failed
				require.ErrorIs(t, err, ErrEnded)
				var none *CallError
				require.ErrorAs(t, err, &none)
				assert.Equal(t, mayHaveRun, none.MayHaveRun)
			}
		}
	})
}
