package rpc

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// leaver is a handler that always ends its goroutine.
type leaver struct {
	slog.Handler
	calls *atomic.Int32
}

func (e leaver) Handle(context.Context, slog.Record) error {
	e.calls.Add(1)
	runtime.Goexit()
	return nil
}

func TestAHandlerThatAlwaysEndsItsGoroutineIsToldOnceForEachLine(t *testing.T) {
	var calls atomic.Int32
	j := journal{log: slog.New(leaver{slog.Default().Handler(), &calls})}
	j.put(slog.LevelInfo, "a line")
	j.flush()
	assert.EqualValues(t, 2, calls.Load(), "the line, and that its handler ended")
}
