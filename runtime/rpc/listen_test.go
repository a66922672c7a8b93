package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

// lines are the lines of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// A server has its address until a shutdown begins. Then the next one has it at once, and the calls of
// clients, while a handler of the first one still works.
func TestAListenAwaitsTheEndOfTheServerBefore(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		first, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, first, Config{Redial: time.Millisecond})
		answered := called(within(t), c, 1)
		r := first.nextRequest()

		_, err = Listen(within(t), ia, first.Addr(), Config{})
		require.ErrorIs(t, err, hw.ErrConnQualInUse)
		log, followed := make(lines, 1), make(chan *Server, 1)
		cfg := Config{Await: true, Redial: time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))}
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(within(t))
		said := make(chan string, 1)
		go func() {
			said <- <-log // the first attempt has failed
			time.AfterFunc(50*time.Millisecond, func() { cancel(enough) })
		}()
		_, err = Listen(ctx, ia, first.Addr(), cfg)
		require.ErrorIs(t, err, enough)
		require.ErrorIs(t, err, hw.ErrConnQualInUse)
		require.ErrorContains(t, err, first.Addr())
		require.Contains(t, <-said, first.Addr())

		go func() {
			second, err := Listen(within(t), ia, first.Addr(), cfg)
			assert.NoError(t, err)
			followed <- second
		}()
		require.Contains(t, <-log, first.Addr())
		require.Empty(t, followed)
		down := make(chan error, 1)
		go func() { down <- first.Shutdown(within(t)) }()
		second := <-followed
		require.NotNil(t, second)
		require.Equal(t, first.Addr(), second.Addr())
		go handle(second, 1, echo)
		for range 3 {
			require.NoError(t, <-called(within(t), c, 1))
		}
		require.Empty(t, down)
		require.Empty(t, answered)
		require.EqualValues(t, 1, c.Snapshot().Reconnects, "beside the connection with the call under way")
		require.NoError(t, r.Reply(r.Payload()))
		require.NoError(t, <-answered)
		require.NoError(t, <-down)
		require.NoError(t, second.Close())
		require.Empty(t, log)
	})
}

func TestAListenAwaitsNothingButItsAddress(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		cfg := Config{Await: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		_, err := Listen(within(t), ia, "127.0.0.1:no port", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidAddress)
		_, err = Listen(within(t), ia, "192.0.2.1:0", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidAddress)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var none context.Context
		_, err = Listen(none, ia, ":0", cfg)
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
	})
}
