package raftgodat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"godat/runtime/rpc"
)

// serve handles requests until the server is closed. There is a worker for each request that may be
// under way, since the answers of some wait for those of others.
func (t *Transport) serve() {
	defer close(t.served)
	defer t.tasks.Wait()
	_ = t.server.Serve(context.Background(), t.cfg.Peers*mostPipeline, t.handle) // a close ends it, without an error
	t.end()                                                                      // also if the adapter was closed
}

// handle handles a request. What it returns says by its code whose an error is.
func (t *Transport) handle(r *rpc.Request) ([]byte, error) {
	answer, err := t.answer(r)
	if engine := (*EngineError)(nil); errors.As(err, &engine) {
		err = &rpc.Error{Code: codeEngine, Text: engine.Text}
	} else if errors.Is(err, ErrNoAnswer) {
		err = &rpc.Error{Code: codeNoAnswer, Text: err.Error()}
	}
	return answer, err
}

// answer is the answer to a request.
func (t *Transport) answer(r *rpc.Request) ([]byte, error) {
	switch r.Method() {
	case methodSnapshotChunk:
		return t.takeChunk(r)
	case methodSnapshotEnd:
		return t.endSnapshot(r)
	}
	request, err := t.request(r)
	if err != nil {
		return nil, err
	}
	switch r.Method() {
	case methodAppend:
		return t.takeAppend(r.Context(), request)
	case methodHeartbeat:
		return t.takeHeartbeat(r.Context(), request)
	case methodVote:
		return t.take(r.Context(), request, new(raft.RequestVoteRequest))
	case methodPreVote:
		return t.take(r.Context(), request, new(raft.RequestPreVoteRequest))
	case methodTimeoutNow:
		return t.take(r.Context(), request, new(raft.TimeoutNowRequest))
	case methodSnapshot:
		return t.beginSnapshot(r.Context(), request)
	}
	return nil, fmt.Errorf("raftgodat: there is no method %d", r.Method())
}

// request is the encoded request of a call, in memory of its own: raft keeps parts of it.
func (t *Transport) request(r *rpc.Request) ([]byte, error) {
	switch n := r.SourceLen(); {
	case n == 0:
		return append([]byte(nil), r.Payload()...), nil
	case n > t.cfg.Largest:
		return nil, fmt.Errorf("raftgodat: a request of %d bytes; the target takes %d", n, t.cfg.Largest)
	}
	return r.ReadAll()
}

// take gives raft a request that is a structure of its own.
func (t *Transport) take(ctx context.Context, request []byte, command any) ([]byte, error) {
	if err := unpack(request, command); err != nil {
		return nil, err
	}
	response, err := t.submit(ctx, raft.RPC{Command: command})
	if err != nil {
		return nil, err
	}
	return wait(ctx, t.life, response)
}

// submit gives raft a request, and returns where the answer comes.
func (t *Transport) submit(ctx context.Context, r raft.RPC) (<-chan raft.RPCResponse, error) {
	response := make(chan raft.RPCResponse, 1)
	r.RespChan = response
	select {
	case t.rpcs <- r:
		return response, nil
	case <-ctx.Done():
	case <-t.life.Done():
	}
	return nil, ErrNoAnswer
}

// wait waits for raft's answer, no longer than the caller does, and encodes it.
func wait(ctx, life context.Context, response <-chan raft.RPCResponse) ([]byte, error) {
	select {
	case r := <-response:
		if r.Error != nil {
			return nil, &EngineError{r.Error.Error()}
		}
		return pack(nil, r.Response)
	case <-ctx.Done():
	case <-life.Done():
	}
	return nil, ErrNoAnswer
}

// takeHeartbeat gives raft a heartbeat, past the requests that wait.
func (t *Transport) takeHeartbeat(ctx context.Context, request []byte) ([]byte, error) {
	_, command, err := parseAppend(request)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	handler := t.heartbeat
	t.mu.Unlock()
	if handler == nil {
		response, err := t.submit(ctx, raft.RPC{Command: command})
		if err != nil {
			return nil, err
		}
		return wait(ctx, t.life, response)
	}
	response := make(chan raft.RPCResponse, 1)
	handler(raft.RPC{Command: command, RespChan: response})
	if len(response) == 0 { // raft is shut down, and never answers
		return nil, ErrNoAnswer
	}
	return wait(ctx, t.life, response)
}

// takeAppend gives raft entries, behind those that its pipeline has sent before.
func (t *Transport) takeAppend(ctx context.Context, request []byte) ([]byte, error) {
	at, command, err := parseAppend(request)
	if err != nil {
		return nil, err
	}
	if at.line != 0 {
		l := t.line(at.line)
		if !l.await(ctx, t.life, at.number) {
			return nil, ErrNoAnswer
		}
		defer l.leave()
		response, err := t.submit(ctx, raft.RPC{Command: command})
		l.pass(at.number)
		if err != nil {
			return nil, err
		}
		return wait(ctx, t.life, response)
	}
	response, err := t.submit(ctx, raft.RPC{Command: command})
	if err != nil {
		return nil, err
	}
	return wait(ctx, t.life, response)
}

// mostLines is how many lines there are at most. One that is forgotten costs its pipeline, which raft makes
// anew.
const mostLines = 1024

// line is the order of the requests of a pipeline: calls may overtake each other on their way.
type line struct {
	mu   sync.Mutex
	next uint64
	turn chan struct{} // closed, and another one, when next changes
	used time.Time     // when the last request came or left
}

func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
}

// line is the one with a number. Those that are not used any more go.
func (t *Transport) line(number uint64) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[number]
	if l == nil {
		if len(t.lines) >= mostLines { // a peer that makes them up
			clear(t.lines)
		}
		for old, other := range t.lines {
			if other.idle(2 * t.cfg.Timeout) {
				delete(t.lines, old)
			}
		}
		l = &line{turn: make(chan struct{}), used: time.Now()}
		t.lines[number] = l
	}
	return l
}

func (l *line) idle(d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.used) > d
}

// await waits until it is the turn of a request. It reports false if its caller does not wait so
// long.
func (l *line) await(ctx, life context.Context, number uint64) bool {
	for {
		l.mu.Lock()
		l.used = time.Now()
		next, turn := l.next, l.turn
		l.mu.Unlock()
		if number <= next {
			return true
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return false
		case <-life.Done():
			return false
		}
	}
}

// pass gives the turn to the request behind one.
func (l *line) pass(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == l.next {
		l.next++
		close(l.turn)
		l.turn = make(chan struct{})
	}
}
