package day

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

// What a handler does with a call, by the call's method.
const (
	answers uint16 = iota + 1
	endsItsGoroutine
	hangs
	answersTwice
	methods
)

// ledger has how often each call has run, by its number.
type ledger struct {
	mu   sync.Mutex
	runs map[uint64]int
}

func (l *ledger) ran(call uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[call]++
}

// answerTo is the answer to a call, which no other call has.
func answerTo(payload []byte) []byte { return append([]byte("answer "), payload...) }

// server is one of the servers, at one address, through its lives.
type server struct {
	t      *testing.T
	ia     *dat.IA
	addr   string
	ledger *ledger
	slow   atomic.Bool   // each handler takes its time: there is more to do than the server can
	again  chan struct{} // sent to for the next life
	done   chan struct{}
}

func startServer(t *testing.T, ia *dat.IA, l *ledger) *server {
	s := &server{t: t, ia: ia, ledger: l, again: make(chan struct{}), done: make(chan struct{})}
	first, err := rpc.Listen(t.Context(), ia, "127.0.0.1:0", s.config())
	require.NoError(t, err)
	s.addr = first.Addr()
	go s.live(first)
	return s
}

func (s *server) config() rpc.Config {
	return rpc.Config{Calls: 4, Conns: 64, Await: true, Grace: 2 * time.Second, Stall: 2 * time.Second}
}

// live serves, one life after the other, until again is closed.
func (s *server) live(one *rpc.Server) {
	defer close(s.done)
	for goOn := true; goOn; {
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- one.Serve(ctx, 4, s.handle) }()
		_, goOn = <-s.again
		stop()
		if err := <-served; err != nil {
			assert.ErrorIs(s.t, err, context.DeadlineExceeded, "the end of the grace is all that a shutdown may report")
		}
		if goOn {
			var err error
			one, err = rpc.Listen(context.Background(), s.ia, s.addr, s.config())
			if !assert.NoError(s.t, err) {
				return
			}
		}
	}
}

func (s *server) handle(r *rpc.Request) ([]byte, error) {
	s.ledger.ran(binary.BigEndian.Uint64(r.Payload()))
	answer := answerTo(r.Payload())
	if s.slow.Load() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
	switch r.Method() {
	case endsItsGoroutine:
		runtime.Goexit()
	case hangs:
		<-r.Context().Done()
		return nil, fmt.Errorf("it hung: %w", context.Cause(r.Context()))
	case answersTwice:
		if r.Reply(answer) == nil {
			assert.Error(s.t, r.Reply([]byte("another")), "a second answer")
		}
		return []byte("a third"), nil
	}
	return answer, nil
}

// outcome checks how a call ended. It reports whether it got its answer, and the least and the most
// times that it may have run.
func outcome(ctx context.Context, method uint16, payload, answer []byte, err error) (answered bool, least, most int, wrong error) {
	var none *rpc.CallError
	var failed *rpc.Error
	switch {
	case err == nil && bytes.Equal(answer, answerTo(payload)) && method != endsItsGoroutine && method != hangs:
		return true, 1, 1, nil
	case err == nil:
		return false, 0, 1, fmt.Errorf("the answer %.40q to the call %.20q of method %d", answer, payload, method)
	case errors.As(err, &none):
		if none.MayHaveRun {
			most = 1
		}
		refused := errors.Is(err, &rpc.Error{Code: rpc.CodeBusy}) || errors.Is(err, &rpc.Error{Code: rpc.CodeDraining})
		at, _ := ctx.Deadline()
		late := errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(at)
		if !late && !errors.Is(err, rpc.ErrEnded) && (!refused || most != 0) {
			return false, 0, most, fmt.Errorf("no true reason: %w", err)
		}
		return false, 0, most, nil
	case errors.As(err, &failed) && failed.Code == rpc.CodeFailed && (method == endsItsGoroutine || method == hangs):
		return false, 1, 1, nil
	}
	return false, 0, 1, fmt.Errorf("a failure that no handler gave: %w", err)
}
