package rpc

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

func TestACallBehindTheEndOfItsConnectionSaysWhoEndedIt(t *testing.T) {
	for _, tc := range []struct {
		by   string
		end  func(ctx context.Context, ia *dat.IA, s *Server, c *Client) error
		want string
	}{
		{"a shutdown", func(ctx context.Context, _ *dat.IA, s *Server, _ *Client) error { return s.Shutdown(ctx) }, "the server is being shut down"},
		{"a close of the server", func(_ context.Context, _ *dat.IA, s *Server, _ *Client) error { return s.Close() }, "the server ended it"},
		{"a close of the client", func(_ context.Context, _ *dat.IA, _ *Server, c *Client) error { return c.Close() }, "the client is closed"},
		{"a close of the adapter", func(_ context.Context, ia *dat.IA, _ *Server, _ *Client) error { return ia.Close() }, "the adapter is closed"},
	} {
		t.Run(tc.by, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *dat.IA) {
				mine, err := dat.Open(t.Context(), ia.Name())
				require.NoError(t, err)
				s := serve(t, ia, Config{}, 1, echo)
				c, err := Dial(within(t), mine, s.Addr(), Config{})
				require.NoError(t, err)
				_, err = c.Call(within(t), Call{}, nil)
				require.NoError(t, err)
				require.NoError(t, tc.end(within(t), mine, s, c))
				<-c.now.ended
				for range 2 {
					_, err = c.Call(within(t), Call{}, nil)
					require.ErrorIs(t, err, ErrEnded)
					require.ErrorContains(t, err, tc.want)
				}
				require.NoError(t, errors.Join(c.Close(), mine.Close()))
			})
		})
	}
}

func TestAnAnswerBehindTheEndOfItsConnectionSaysWhoEndedIt(t *testing.T) {
	for _, tc := range []struct {
		by   string
		end  func(t *testing.T, s *Server, c *Client, conn *dat.Conn)
		want string
	}{
		{"a close of the client", func(t *testing.T, _ *Server, c *Client, _ *dat.Conn) { assert.NoError(t, c.Close()) }, "the client ended it"},
		{"a close of the server", func(t *testing.T, s *Server, _ *Client, _ *dat.Conn) { assert.NoError(t, s.Close()) }, "this server, or its adapter, has been closed"},
		{"a shutdown that took too long", func(t *testing.T, s *Server, _ *Client, _ *dat.Conn) {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			assert.ErrorIs(t, s.Shutdown(over), context.Canceled)
		}, "this server, or its adapter, has been closed"},
		{"a client that breaks the rules", func(t *testing.T, _ *Server, c *Client, _ *dat.Conn) {
			assert.NoError(t, c.now.link.conn.SendBytes([]byte("nonsense")))
		}, errMalformed.Error()},
	} {
		t.Run(tc.by, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *dat.IA) {
				s, err := Listen(t.Context(), ia, ":0", Config{})
				require.NoError(t, err)
				c := dial(t, ia, s, Config{})
				failed := called(within(t), c, 1)
				r := s.nextRequest()
				tc.end(t, s, c, r.Conn())
				<-r.Context().Done()
				require.Error(t, <-failed)
				err = r.Reply(nil)
				require.ErrorIs(t, err, ErrEnded)
				require.ErrorContains(t, err, tc.want)
				require.NoError(t, s.Close())
			})
		})
	}
}

// The server breaks the connection of a client that stalls. Another call of that client has its own
// time, so its error is not the end of that.
func TestAServerThatBreaksAConnectionLogsItAndTellsTheOthersOfIt(t *testing.T) {
	onEachStalled(t, func(t *testing.T, server, client *dat.IA, _ func() bool) {
		log := new(logged)
		s, err := Listen(t.Context(), server, ":0", Config{Stall: time.Hour, Patience: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		c := dial(t, client, s, Config{Patience: 5 * time.Second})
		other := called(within(t), c, 1)
		r := s.nextRequest()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, Call{Method: 7, SourceBytes: make([]byte, 8)}, nil)
			failed <- err
		}()
		stalled := s.nextRequest()
		require.ErrorIs(t, stalled.ReadBytes(make([]byte, 8), 0), context.DeadlineExceeded)
		<-r.Context().Done()
		_ = stalled.Reply(nil) // its caller may have been told before
		err = r.Reply(nil)
		require.ErrorIs(t, err, ErrEnded)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "method 7")
		require.ErrorContains(t, err, "Config.Patience")
		require.Error(t, <-failed)
		require.Error(t, <-other)
		require.NoError(t, s.Close())
		assert.Contains(t, log.String(), "broke a connection")
		assert.Contains(t, log.String(), "method 7")
	})
}

func TestAServerLogsThatAClientTakesNoAnswers(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		log := new(logged)
		s := serve(t, ia, Config{Stall: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))}, 1, echo)
		c := stingy(t, ia, s, 3)
		require.Eventually(t, func() bool { return strings.Contains(log.String(), "Config.Stall") }, time.Minute, time.Millisecond)
		assert.Contains(t, log.String(), c.LocalAddr().String())
	})
}

func TestTheTimeLimitOfAConnectionIsNotThatOfItsCalls(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		c := dial(t, ia, serve(t, ia, Config{}, 1, silent), Config{})
		failed := called(within(t), c, 1)
		require.Eventually(t, func() bool { return c.Snapshot().Calls == 1 }, time.Minute, time.Millisecond)
		c.now.link.fail(&hw.Cause{Text: "the peer is silent", Err: hw.ErrTimeout})
		err := <-failed
		require.ErrorIs(t, err, ErrEnded)
		require.ErrorIs(t, err, hw.ErrTimeout)
		require.ErrorAs(t, err, new(*hw.Cause))
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the peer is silent")
	})
}

// logged is a log that goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What a server can't send any more, because it has closed the connection, is no fault of its client's.
func TestASendBehindAnOwnCloseIsNotTheClientsFault(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		ctx, cancel := context.WithCancel(within(t))
		answered := called(ctx, c, 1)
		r := s.nextRequest()
		p := r.from
		comes, waits := p.link.conn.Buffer(), p.link.conn.Buffer()
		r.mu.Lock() // so the reader, behind the CANCEL, does not hear of the end yet
		cancel()
		require.Eventually(t, func() bool {
			p.link.mu.Lock()
			defer p.link.mu.Unlock()
			return p.link.taken == 2
		}, time.Minute, time.Millisecond)
		s.close()
		require.NoError(t, p.link.conn.Close())
		p.link.mu.Lock()
		p.link.waiting = append(p.link.waiting, bare(waits, kindCredit, 0))
		p.link.count(1)
		p.link.mu.Unlock()
		p.heed(bare(comes, kindCredit, 0))
		r.mu.Unlock()
		require.Eventually(t, func() bool { return p.link.reason() != ErrEnded }, time.Minute, time.Millisecond) //nolint:errorlint // without a reason
		require.ErrorIs(t, p.link.reason(), errServerClosed)
		require.ErrorIs(t, <-answered, context.Canceled)
		require.ErrorIs(t, r.Reply(nil), errServerClosed)
		require.NoError(t, s.Close())
	})
}
