package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestARefusedClientLearnsWhy(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{Conns: 1})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		_, err = Dial(within(t), ia, s.Addr(), Config{})
		require.ErrorIs(t, err, &Error{Code: CodeFull})
		require.ErrorIs(t, err, event.Error(event.PeerRejected))
		require.ErrorContains(t, err, "no place for another connection")
		require.ErrorContains(t, err, s.Addr())

		held := called(t.Context(), c, 1)
		r := s.nextRequest()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(within(t)) }()
		require.Eventually(t, s.drains, time.Minute, time.Millisecond)
		_, err = c.Call(within(t), Call{}, nil)
		require.ErrorIs(t, err, &Error{Code: CodeDraining})
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-held)
		require.NoError(t, <-down)
	})
}

// A client that meets another program's listener says where.
func TestAClientNamesTheAddressOfAPeerThatSpeaksAnotherProtocol(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		ln, err := ia.Listen(t.Context(), ":0", dat.ConnConfig{})
		require.NoError(t, err)
		go func() { _, _ = ln.Accept(ep.RequestOf(<-ln.Requests()), []byte("welcome")) }()
		_, err = Dial(within(t), ia, ln.Addr(), Config{})
		require.ErrorContains(t, err, "rpc.Dial "+ln.Addr())
		require.ErrorContains(t, err, "does not speak this package's protocol")
		require.NoError(t, ln.Close())
	})
}

// The beginning of a refusal is the same in all versions.
func TestARefusalNamesTheVersion(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 1, echo)
		later := hello{calls: 1, receives: 4, message: 1}.encode()
		later[5], later[21] = newest+1, newest+2
		_, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Private: later})
		var cause *hw.Cause
		require.ErrorAs(t, err, &cause)
		assert.Equal(t, refusal(CodeUnknown), cause.Private[:refusalSize])

		of := refusal(CodeUnknown)
		of[5], of[9] = newest+1, newest+2
		ln, err := ia.Listen(t.Context(), ":0", dat.ConnConfig{})
		require.NoError(t, err)
		go func() { _ = ep.RequestOf(<-ln.Requests()).Reject(of) }()
		_, err = Dial(within(t), ia, ln.Addr(), Config{})
		require.ErrorIs(t, err, errVersion)
		require.ErrorContains(t, err, "it speaks "+versions(newest+1, newest+2)+" of the protocol")
		require.ErrorContains(t, err, versions(oldest, newest))
		require.NoError(t, ln.Close())

		ln, err = ia.Listen(t.Context(), ":0", dat.ConnConfig{}) // as servers of version 1 did
		require.NoError(t, err)
		go func() { _ = ep.RequestOf(<-ln.Requests()).Reject(nil) }()
		_, err = Dial(within(t), ia, ln.Addr(), Config{})
		require.ErrorIs(t, err, event.Error(event.PeerRejected))
		require.ErrorContains(t, err, "speaks version 1")
		require.NoError(t, ln.Close())
	})
	require.NoError(t, parseRefusal([]byte("no refusal at all")))
	require.EqualError(t, parseRefusal(refusal(99)), "rpc: the server refuses the connection (code 99)")
}

func TestAnErrorIsTheOneOfItsCode(t *testing.T) {
	err := fmt.Errorf("wrapped: %w", &Error{CodeFull, "text"})
	for target, is := range map[error]bool{
		&Error{Code: CodeFull}: true, &Error{CodeFull, "text"}: true, &Error{CodeFull, "another"}: false,
		&Error{Code: CodeBusy}: false, ErrEnded: false, (*Error)(nil): false,
	} {
		assert.Equal(t, is, errors.Is(err, target), target)
	}
}

func TestAClientAwaitsItsServer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		at := s.Addr()
		require.NoError(t, s.Close())
		var log bytes.Buffer
		cfg := Config{Await: true, Redial: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil))}

		enough, said := errors.New("enough"), make(lines, 1)
		ctx, cancel := context.WithCancelCause(within(t))
		go func() {
			<-said // the first attempt has failed
			cancel(enough)
		}()
		_, err = Dial(ctx, ia, at, Config{Await: true, Redial: cfg.Redial, Log: slog.New(slog.NewTextHandler(said, nil))})
		require.ErrorIs(t, err, enough)
		require.ErrorContains(t, err, at)
		var cause *hw.Cause
		require.ErrorAs(t, err, &cause, "why the last attempt failed")

		dialed := make(chan *Client, 1)
		log.Reset()
		go func() {
			c, err := Dial(within(t), ia, at, cfg)
			assert.NoError(t, err)
			dialed <- c
		}()
		require.Empty(t, dialed)
		s, err = Listen(t.Context(), ia, at, Config{})
		require.NoError(t, err)
		c := <-dialed
		go handle(s, 1, echo)
		_, err = c.Call(within(t), Call{}, nil)
		require.NoError(t, err)
		require.NoError(t, errors.Join(c.Close(), s.Close()))
		assert.Contains(t, log.String(), "connected")
		assert.NotContains(t, log.String(), "<nil>")
		assert.NotContains(t, log.String(), "the connection has ended")
	})
}

func TestAClientAwaitsNothingThatCanNotCome(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		_, err := Dial(within(t), ia, "nowhere", Config{Await: true})
		require.ErrorIs(t, err, hw.ErrInvalidAddress)
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		require.NoError(t, pz.Close())
		_, err = Dial(within(t), ia, "127.0.0.1:1", Config{Await: true, PZ: pz})
		require.ErrorIs(t, err, hw.ErrInvalidHandle)
	})
}
