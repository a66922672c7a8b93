package rpc

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// journal hands lines to Config.Log in a goroutine of its own, which lives while there are lines: a handler that blocks
// or ends its goroutine holds nothing else.
type journal struct {
	log *slog.Logger // nil if nobody wants lines; immutable

	mu      sync.Mutex
	lines   []slog.Record // that wait, the oldest first
	dropped int           // lines since the last one that found place
	written chan struct{} // closed when the goroutine has ended; nil if there is none
}

const (
	mostLines = 64              // that wait
	logTime   = 5 * time.Second // how long Close waits for them
)

// put adds a line.
func (j *journal) put(level slog.Level, what string, attrs ...slog.Attr) {
	if j.log == nil {
		return
	}
	line := slog.NewRecord(time.Now(), level, what, 0)
	line.AddAttrs(attrs...)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == mostLines {
		j.dropped++
		return
	}
	if j.dropped > 0 {
		line.AddAttrs(slog.Int("lines dropped before", j.dropped))
		j.dropped = 0
	}
	j.lines = append(j.lines, line)
	if j.written == nil {
		j.written = make(chan struct{})
		go j.write()
	}
}

// endedText is the line in place of one at which the handler ended its goroutine.
const endedText = "the handler of Config.Log ended its goroutine"

// write is the journal's goroutine. A handler that ends it at endedText, too, is not told again.
func (j *journal) write() {
	var line slog.Record
	returned := false
	defer func() {
		if !returned {
			if line.Message != endedText {
				j.mu.Lock()
				ended := slog.NewRecord(time.Now(), slog.LevelError, endedText, 0)
				j.lines = append([]slog.Record{ended}, j.lines...)
				j.mu.Unlock()
			}
			go j.write()
		}
	}()
	ctx := context.Background()
	var ok bool
	for line, ok = j.next(); ok; line, ok = j.next() {
		if h := j.log.Handler(); h.Enabled(ctx, line.Level) {
			_ = h.Handle(ctx, line)
		}
	}
	returned = true
}

// next is the line to be written; false if there is none, and the goroutine ends.
func (j *journal) next() (line slog.Record, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		close(j.written)
		j.written = nil
		return line, false
	}
	line = j.lines[0]
	j.lines = j.lines[1:]
	return line, true
}

// flush waits until all lines are written, though not for ever.
func (j *journal) flush() {
	j.mu.Lock()
	written := j.written
	j.mu.Unlock()
	if written == nil {
		return
	}
	late := time.NewTimer(logTime)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
	}
}
