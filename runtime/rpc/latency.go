package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	dat "godat/runtime"
)

// mostMethods is how many methods have a histogram each. A client may name any number.
const mostMethods = 64

// latencies has how long calls took, by method. Its methods may be called from any goroutine.
type latencies struct {
	mu     sync.Mutex
	of     map[uint16]*dat.Histogram
	others *dat.Histogram // of further methods
}

// MethodSnapshot says how long the calls of a method took: of a client from the call to the answer, of
// a server from the arrival of the request to its Reply or Fail. A snapshot of the adapter has one
// for each method, as the report "rpc methods", of the first 64 methods and one of all others.
// Calls count while requests are measured (see [godat/runtime.IA.MeasureLatency]).
type MethodSnapshot struct {
	Method  string // with the end and the address of the server
	Latency *dat.HistogramSnapshot
}

// record counts the time of a call of a method.
func (l *latencies) record(method uint16, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.of[method]
	switch {
	case h != nil:
	case len(l.of) < mostMethods:
		if l.of == nil {
			l.of = make(map[uint16]*dat.Histogram)
		}
		h = dat.NewHistogram()
		l.of[method] = h
	default:
		if l.others == nil {
			l.others = dat.NewHistogram()
		}
		h = l.others
	}
	h.Record(took)
}

// rows is the report "rpc methods" of an end.
func (l *latencies) rows(end string) (rows []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, method := range slices.Sorted(maps.Keys(l.of)) {
		rows = append(rows, MethodSnapshot{fmt.Sprintf("method %d, %s", method, end), l.of[method].Snapshot()})
	}
	if l.others != nil {
		rows = append(rows, MethodSnapshot{"other methods, " + end, l.others.Snapshot()})
	}
	return rows
}

// callOver makes a call over a session. While requests are measured, so is a call that is answered.
func (c *Client) callOver(ctx context.Context, s *session, call *Call, dst []byte) ([]byte, error) {
	if !c.ia.MeasuresLatency() {
		return s.call(ctx, call, dst)
	}
	began := time.Now()
	got, err := s.call(ctx, call, dst)
	if err == nil || !errors.As(err, new(*CallError)) {
		c.latencies.record(call.Method, time.Since(began))
	}
	return got, err
}
