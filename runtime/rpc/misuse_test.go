package rpc

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// A program that keeps a request behind its answer meets no other call, though its slot has the next.
func TestARequestThatWasAnsweredIsNoOtherCalls(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		c := dial(t, ia, s, Config{Calls: 1})
		call := func() (*Request, <-chan string) {
			got := make(chan string, 1)
			go func() {
				text, err := c.Call(within(t), Call{Payload: []byte("asked"), SourceBytes: []byte("source"), SinkBytes: make([]byte, 8)}, nil)
				assert.NoError(t, err)
				got <- string(text)
			}()
			return s.nextRequest(), got
		}
		first, got := call()
		ctx := first.Context()
		require.NoError(t, first.Reply([]byte("first")))
		require.Equal(t, "first", <-got)
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		second, got := call()

		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		require.NoError(t, err)
		defer f.Close()
		memory := alloc(t, s.PZ(), 8)
		for name, use := range map[string]func() error{
			"Reply":     func() error { return first.Reply([]byte("late")) },
			"Fail":      func() error { return first.Fail(CodeUser, "late") },
			"Read":      func() error { return first.Read(memory.Segment(0, 1), 0) },
			"Write":     func() error { return first.Write(memory.Segment(0, 1), 0) },
			"ReadBytes": func() error { return first.ReadBytes(make([]byte, 1), 0) },
			"ReadAll": func() error {
				_, err := first.ReadAll()
				return err
			},
			"WriteBytes":         func() error { return first.WriteBytes([]byte("x"), 0) },
			"WriteBytes of none": func() error { return first.WriteBytes(nil, 0) },
			"ReadFile": func() error {
				_, err := first.ReadFile(f, 0)
				return err
			},
			"WriteFile": func() error {
				_, err := first.WriteFile(f, 0)
				return err
			},
			"Context": func() error { return context.Cause(first.Context()) },
		} {
			err := use()
			require.ErrorIs(t, err, hw.ErrInvalidState, name)
			require.ErrorContains(t, err, "was answered", name)
			require.ErrorContains(t, err, first.String(), name)
		}
		require.Nil(t, first.Payload())
		require.Error(t, first.Context().Err())
		require.NoError(t, second.Context().Err())
		require.Equal(t, "asked", string(second.Payload()))
		require.NoError(t, second.Reply([]byte("second")))
		require.Equal(t, "second", <-got)
	})
}

// A Read that waits for its turn, as it does before its first piece and between two, is under way.
func TestAReplyWaitsForAReadThatWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		defer s.Close()
		c := dial(t, ia, s, Config{})
		answered := make(chan error, 1)
		go func() {
			_, err := c.Call(t.Context(), Call{SourceBytes: []byte("all")}, nil)
			answered <- err
		}()
		r := s.nextRequest()
		turns := r.from.turns.line
		require.True(t, turns.TryAcquire(atOnce))
		into, read, replied := make([]byte, 3), make(chan error, 1), make(chan error, 1)
		go func() { read <- r.ReadBytes(into, 0) }()
		synctest.Wait()
		go func() { replied <- r.Reply(nil) }()
		synctest.Wait()
		assert.Empty(t, replied)
		assert.Empty(t, answered)
		turns.Release(atOnce)
		require.NoError(t, <-read)
		assert.Equal(t, "all", string(into))
		require.NoError(t, <-replied)
		require.NoError(t, <-answered)
	})
}

func TestAHandlerThatEndsItsGoroutineFailsItsCallAlone(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		served := goServe(t, s, 1, func(r *Request) ([]byte, error) {
			if r.Method() == 1 {
				runtime.Goexit()
			}
			return r.Payload(), nil
		})
		c := dial(t, ia, s, Config{})
		for range 3 {
			_, err = c.Call(within(t), Call{Method: 1}, nil)
			require.ErrorIs(t, err, &Error{Code: CodeFailed})
			got, err := c.Call(within(t), Call{Payload: []byte("on")}, nil)
			require.NoError(t, err)
			require.Equal(t, "on", string(got))
		}
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
}

// A call with memory ends while its handler waits for something else. The others of its client go on.
func TestTheEndOfACallWithMemoryConcernsNoOther(t *testing.T) {
	const others = 7
	for _, call := range []Call{{SinkBytes: make([]byte, 4096)}, {SourceBytes: make([]byte, 4096)}} {
		onEach(t, func(t *testing.T, ia *dat.IA) {
			s, err := Listen(t.Context(), ia, ":0", Config{Patience: time.Hour})
			require.NoError(t, err)
			begun, mayEnd, late := make(chan bool, 64), make(chan bool), make(chan error, 1)
			served := goServe(t, s, 32, func(r *Request) ([]byte, error) {
				begun <- true
				<-mayEnd
				if r.SinkLen() > 0 {
					late <- r.WriteBytes([]byte("late"), 0)
				} else if r.SourceLen() > 0 {
					late <- r.ReadBytes(make([]byte, 8), 0)
				}
				return r.Payload(), nil
			})
			c := dial(t, ia, s, Config{Calls: others + 1, Patience: time.Hour})
			answers := called(t.Context(), c, others)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(ctx, call, nil)
				ended <- err
			}()
			for range others + 1 {
				<-begun
			}
			cancel()
			err = <-ended // long before Patience
			require.ErrorIs(t, err, context.Canceled)
			var none *CallError
			require.ErrorAs(t, err, &none)
			assert.True(t, none.MayHaveRun)
			next := called(t.Context(), c, 1) // in the slot that is free again
			<-begun
			close(mayEnd)
			require.ErrorIs(t, <-late, context.Canceled)
			for range others {
				require.NoError(t, <-answers)
			}
			require.NoError(t, <-next)
			require.NoError(t, s.Shutdown(within(t)))
			require.NoError(t, <-served)
		})
	}
}

// A client has no more requests that handlers go on with behind their calls' end than it may have calls.
func TestAClientThatLeavesManyCallsHoldsNoMoreThanItsPart(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		const calls = 3
		s, err := Listen(t.Context(), ia, ":0", Config{Calls: calls})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{Calls: calls, Patience: 50 * time.Millisecond})
		var held []*Request
		for range calls + 1 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(ctx, Call{SinkBytes: make([]byte, 8)}, nil)
				ended <- err
			}()
			held = append(held, s.nextRequest())
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
			require.Equal(t, len(held) > calls, c.now.hasEnded(), "%d", len(held))
		}
		_, err = c.Call(within(t), Call{}, nil)
		require.ErrorIs(t, err, ErrEnded)
		require.ErrorContains(t, err, "Config.Patience", "why this client has broken it")
		require.Eventually(t, func() bool { return s.Snapshot().Conns == 0 }, time.Minute, time.Millisecond)
		for _, r := range held[:calls] {
			require.NoError(t, r.Reply(nil), "whose caller knows already")
		}
		require.ErrorIs(t, held[calls].Reply(nil), ErrEnded)
		require.NoError(t, s.Shutdown(within(t)))
	})
}
