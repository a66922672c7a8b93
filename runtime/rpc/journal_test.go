package rpc

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// handling is a handler that does something before the first line.
type handling struct {
	slog.Handler
	first func()
	began *atomic.Bool
}

func (h handling) Handle(ctx context.Context, r slog.Record) error {
	if !h.began.Swap(true) {
		h.first()
	}
	return h.Handler.Handle(ctx, r)
}

// written is a journal whose handler does first before the first line, and what it has written.
func written(first func()) (*journal, *bytes.Buffer) {
	said := new(bytes.Buffer)
	return &journal{log: slog.New(handling{slog.NewTextHandler(said, nil), first, new(atomic.Bool)})}, said
}

func TestALogThatBlocksHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		j, said := written(func() { <-goOn })
		for i := range mostLines + 10 {
			j.put(slog.LevelWarn, "line", slog.Int("i", i))
			synctest.Wait()
		}
		began := time.Now()
		j.flush()
		assert.Equal(t, logTime, time.Since(began))
		close(goOn)
		j.flush()
		j.put(slog.LevelWarn, "the last one")
		j.flush()
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		require.Len(t, lines, mostLines+2, "the one with the handler, those that waited, and the last")
		for i, line := range lines[:mostLines+1] {
			assert.True(t, strings.HasSuffix(line, slog.Int("i", i).String()), line)
		}
		assert.Contains(t, lines[mostLines+1], `"lines dropped before"=9`)
	})
}

func TestALogThatEndsItsGoroutineLosesItsLineAlone(t *testing.T) {
	j, said := written(runtime.Goexit)
	for _, line := range []string{"one", "two", "three"} {
		j.put(slog.LevelWarn, line)
	}
	j.flush()
	assert.Regexp(t, "(?s)^[^\n]*ended its goroutine[^\n]*\n[^\n]*two[^\n]*\n[^\n]*three[^\n]*\n$", said.String())
}

// blocked is a log whose first line blocks until the test ends.
func blocked(t *testing.T) *slog.Logger {
	goOn, ended := make(chan struct{}), make(chan struct{})
	j, _ := written(func() { <-goOn; close(ended) })
	t.Cleanup(func() { close(goOn); <-ended })
	return j.log
}

// While a line of a server blocks, others are served, and while one of a client does, it connects anew. Each close waits
// for its lines, and then goes on.
func TestAServerAndAClientWhoseLogsBlockGoOn(t *testing.T) {
	for _, name := range adapters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			serverLog, clientLog := blocked(t), blocked(t)
			ia := open(t, name)
			s := serve(t, ia, Config{Log: serverLog}, 1, echo)
			c, err := Dial(within(t), ia, s.Addr(), Config{Redial: time.Millisecond, Log: clientLog})
			require.NoError(t, err)
			_, err = c.Call(within(t), Call{Idempotent: true}, nil)
			require.NoError(t, err)
			for range 3 { // both ends log
				s.mu.Lock()
				for p := range s.conns {
					p.link.fail(errMalformed)
				}
				s.mu.Unlock()
				_, err = c.Call(within(t), Call{Idempotent: true}, nil)
				require.NoError(t, err)
			}
			began := time.Now()
			require.NoError(t, c.Close())
			require.NoError(t, s.Close())
			assert.Less(t, time.Since(began), time.Minute)
		})
	}
}
