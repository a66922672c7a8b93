package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestAnAnswerOfAnyLengthIsDecoded(t *testing.T) {
	onValues(t, Config{Message: 100}, Config{Message: 200}, func(t *testing.T, c *Client) {
		for _, n := range []int{0, 70, 100, 200, defaultMessage, 1 << 20} {
			for _, sink := range [][]byte{nil, make([]byte, 8)} {
				var got value
				require.NoError(t, c.CallJSON(within(t), Call{SinkBytes: sink}, value{"q", n}, &got))
				assert.True(t, got == value{strings.Repeat("q", n), n + 1}, n)
			}
		}
		sink, written := make([]byte, 2*defaultMessage), 0
		var got value
		require.NoError(t, c.CallJSON(within(t), Call{Method: 2, SinkBytes: sink, Written: &written}, value{}, &got))
		assert.Len(t, got.Text, defaultMessage)
		assert.Equal(t, 4, written)
		assert.Equal(t, "body", string(sink[:4]), "an answer does not go over what the handler has written")
		snapshot := c.Snapshot()
		assert.EqualValues(t, 13, snapshot.Answers, "a fetch is no call of the program's")
		assert.Zero(t, snapshot.Failures)
		assert.Zero(t, snapshot.Calls)
	})
}

// More callers than a connection has calls ask at a time: each gets its own answer, and no slot is lost.
func TestEachCallerFetchesItsOwnAnswer(t *testing.T) {
	onValues(t, Config{Calls: 3}, Config{}, func(t *testing.T, c *Client) {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				text := strings.Repeat(string(rune('a'+i)), 1000)
				for n := range 10 {
					var got value
					assert.NoError(t, c.CallJSON(within(t), Call{}, value{text, n}, &got))
					assert.True(t, got == value{strings.Repeat(text, n), n + 1})
				}
			})
		}
		all.Wait()
	})
}

// longAnswers is a server whose answers are too long for a message, and a session of a client.
func longAnswers(t *testing.T, ia *dat.IA, cfg Config) (*Server, *Client) {
	t.Helper()
	cfg.Message = 8
	s, err := Listen(t.Context(), ia, ":0", cfg)
	require.NoError(t, err)
	served := goServe(t, s, 2, func(*Request) ([]byte, error) { return make([]byte, 100), nil })
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, <-served)
	})
	return s, dial(t, ia, s, Config{})
}

// holds waits until a shutdown would wait for so many answers.
func holds(t *testing.T, s *Server, n int) {
	t.Helper()
	assert.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.active == n
	}, time.Minute, time.Millisecond)
}

func TestAnAnswerIsKeptForACallerWhoFetchesAndNoLongerThanItMay(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, _ := longAnswers(t, ia, Config{Calls: 2})
		hello := hello{calls: 2, receives: 10, message: 64, metadata: 1}.encode()
		ask := func(c *dat.Conn, flags byte, turn uint32) uint16 {
			require.NoError(t, c.SendBytes(encoded(header{kind: kindCall, flags: flags, call: turn << 16})))
			h, _ := heard(t, c)
			require.EqualValues(t, kindAnswer, h.kind)
			return h.code
		}
		c, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: hello})
		require.NoError(t, err)
		assert.Equal(t, CodeTooLong, ask(c, 0, 1), "of one who does not fetch nothing is kept")
		holds(t, s, 0)
		assert.Equal(t, CodeUnknown, ask(c, flagFetch, 2), "nor fetched")
		assert.Equal(t, codeLater, ask(c, flagLater, 3))
		holds(t, s, 1)
		assert.Equal(t, CodeTooLong, ask(c, 0, 4), "the next call of the slot drops it")
		holds(t, s, 0)
		assert.Equal(t, codeLater, ask(c, flagLater, 5))
		assert.Equal(t, CodeFailed, ask(c, flagFetch, 6), "without memory for it")
		holds(t, s, 0)
		assert.Equal(t, CodeUnknown, ask(c, flagFetch, 7))
		assert.Equal(t, codeLater, ask(c, flagLater, 8))
		require.NoError(t, c.Close())
		holds(t, s, 0) // the end of its connection drops it

		s, _ = longAnswers(t, ia, Config{Calls: 2, Stall: 5 * time.Millisecond})
		c, err = ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: hello})
		require.NoError(t, err)
		assert.Equal(t, codeLater, ask(c, flagLater, 1))
		holds(t, s, 0) // and Stall does
		assert.Equal(t, CodeUnknown, ask(c, flagFetch, 2))
		require.NoError(t, c.Close())
	})
}

// A shutdown that begins between an answer and its fetch waits for the fetch.
func TestAShutdownWaitsForAnAnswerThatIsFetched(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		down := make(chan error, 1)
		var s *Server
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			down <- s.Serve(ctx, 1, HandleJSON(func(*Request, int) (string, error) {
				cancel() // as the shutdown begins
				return strings.Repeat("a", 1<<20), nil
			}))
		}()
		c := dial(t, ia, s, Config{})
		var got string
		require.NoError(t, c.CallJSON(within(t), Call{}, 1, &got))
		assert.Len(t, got, 1<<20)
		require.NoError(t, <-down)
	})
}

// A server may say anything of the length of an answer.
func TestALengthThatIsNoneEndsTheConnection(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for _, length := range []string{"", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "12345"} {
			server, c := bareServer(t, ia, hello{calls: 4, receives: 10, message: 64, metadata: 1}, Config{})
			failed := make(chan error, 1)
			go func() {
				var got string
				failed <- c.CallJSON(within(t), Call{}, 1, &got)
			}()
			h, _ := heard(t, server)
			require.Equal(t, byte(flagLater), h.flags)
			require.NoError(t, server.SendBytes(append(encoded(header{kind: kindAnswer, code: codeLater, call: h.call, taken: 1}), length...)))
			err := <-failed
			require.ErrorIs(t, err, errMalformed)
			var none *CallError
			require.True(t, errors.As(err, &none) && none.MayHaveRun)
			require.NoError(t, server.Close())
		}
	})
}

// The call has run, and its connection lives: there is no next one to wait for.
func TestACallWhoseAnswerCannotBeFetchedIsNotMadeAgain(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		gone, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, gone.Close())
		for _, memory := range []bool{false, true} {
			server, c := bareServer(t, ia, hello{calls: 4, receives: 10, message: 64, metadata: 1}, redialing)
			zone := c.cfg.PZ
			if !memory {
				c.cfg.PZ = gone
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			failed := make(chan error, 1)
			go func() {
				var got string
				failed <- c.CallJSON(ctx, Call{Idempotent: true}, 1, &got)
			}()
			h, _ := heard(t, server)
			length := binary.BigEndian.AppendUint32(nil, 1000)
			require.NoError(t, server.SendBytes(append(encoded(header{kind: kindAnswer, code: codeLater, call: h.call, taken: 1}), length...)))
			if memory {
				h, _ = heard(t, server)
				require.Equal(t, byte(flagFetch|flagSink), h.flags)
				require.NoError(t, server.SendBytes(encoded(header{kind: kindAnswer, call: h.call, taken: 2, written: 1})))
			}
			err := <-failed
			cancel()
			c.cfg.PZ = zone
			require.ErrorContains(t, err, "its answer of 1000 bytes was not fetched")
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			var none *CallError
			require.True(t, errors.As(err, &none) && none.MayHaveRun)
			require.NoError(t, server.Close())
		}
	})
}

// Servers that follow each other at one address lose no answer that is fetched, and run no call twice.
func TestServersThatFollowEachOtherLoseNoLongAnswer(t *testing.T) {
	const calls = 100
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var runs [4 * calls]atomic.Int32
		at, begun := ":0", atomic.Int32{}
		listen := func() (*Server, <-chan error) {
			s, err := Listen(t.Context(), ia, at, Config{Message: 64, Await: true})
			require.NoError(t, err)
			at = s.Addr()
			return s, goServe(t, s, 3, HandleJSON(func(_ *Request, n int) (string, error) {
				runs[n].Add(1)
				begun.Add(1)
				return strings.Repeat(strconv.Itoa(n), 100), nil
			}))
		}
		s, served := listen()
		var all sync.WaitGroup
		for i := range 4 {
			c := dial(t, ia, s, Config{Calls: 2, Message: 64, Redial: 20 * time.Millisecond})
			all.Go(func() {
				for n := range calls {
					var got string
					if !assert.NoError(t, c.CallJSON(within(t), Call{}, i*calls+n, &got)) {
						return
					}
					assert.Equal(t, strings.Repeat(strconv.Itoa(i*calls+n), 100), got)
				}
			})
		}
		for i := range 3 {
			require.Eventually(t, func() bool { return int(begun.Load()) > 4*calls*(i+1)/4 }, time.Minute, time.Millisecond)
			down := make(chan error, 1)
			before := s
			go func() { down <- before.Shutdown(within(t)) }()
			was := served
			s, served = listen()
			require.NoError(t, <-down)
			require.NoError(t, <-was)
		}
		all.Wait()
		require.NoError(t, s.Shutdown(within(t)))
		require.NoError(t, <-served)
		for i := range runs {
			assert.EqualValues(t, 1, runs[i].Load(), "call %d", i)
		}
	})
}

// A server's word on a length costs no memory: bytes that come do.
func TestTheLengthThatAServerNamesTakesNoMemory(t *testing.T) {
	const calls, most = 8, 8 << 20
	onEach(t, func(t *testing.T, ia *dat.IA) {
		server, c := bareServer(t, ia, hello{calls: calls, receives: 32, message: 64, metadata: 1}, Config{Calls: calls})
		ctx, cancel := context.WithCancel(within(t))
		var all sync.WaitGroup
		before := heap()
		for range calls {
			all.Go(func() {
				var got string
				assert.ErrorIs(t, c.CallJSON(ctx, Call{}, 1, &got), context.Canceled)
			})
		}
		for fetches := uint32(0); fetches < calls; {
			switch h, _ := heard(t, server); h.flags {
			case flagLater:
				length := binary.BigEndian.AppendUint32(nil, mostLater)
				require.NoError(t, server.SendBytes(append(encoded(header{kind: kindAnswer, code: codeLater, call: h.call}), length...)))
			case flagFetch | flagSink:
				fetches++
			}
		}
		assert.Less(t, heap(), before+most, "of %d that were named", calls*mostLater)
		cancel()
		require.NoError(t, server.Close())
		all.Wait()
	})
}

// heap is how many bytes the Go heap has.
func heap() uint64 {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc
}

func TestAnAnswerThatIsLongerThanTheClientTakesIsTooLong(t *testing.T) {
	onValues(t, Config{Message: 100}, Config{Message: 100, Answer: 1000}, func(t *testing.T, c *Client) {
		for _, n := range []int{900, 1100} {
			var got value
			err := c.CallJSON(within(t), Call{}, value{"q", n}, &got)
			if n < 1000 {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, &Error{Code: CodeTooLong})
			assert.ErrorContains(t, err, "Config.Answer is 1000")
		}
	})
}
