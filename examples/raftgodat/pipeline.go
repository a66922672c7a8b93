package raftgodat

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// ready is how many answers of a pipeline may wait for raft.
const ready = 128

// pipeline is a raft.AppendPipeline. It has a connection of its own.
type pipeline struct {
	// Immutable.
	t     *Transport
	link  *link
	line  uint64
	ctx   context.Context // ends with Close
	end   context.CancelFunc
	free  chan struct{} // has a value for each request that may be sent
	sent  chan *future  // those without an answer, in their order
	ready chan raft.AppendFuture
	done  chan struct{} // closed when deliver has ended

	mu     sync.Mutex // held while a request gets its number
	number uint64
	closed bool
	calls  sync.WaitGroup
}

// future is a raft.AppendFuture.
type future struct {
	start time.Time
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	done  chan struct{}
	err   error
}

func (f *future) Error() error {
	<-f.done
	return f.err
}
func (f *future) Start() time.Time                      { return f.start }
func (f *future) Request() *raft.AppendEntriesRequest   { return f.args }
func (f *future) Response() *raft.AppendEntriesResponse { return f.resp }

// AppendEntriesPipeline implements raft.Transport.
func (t *Transport) AppendEntriesPipeline(_ raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	l, err := t.newLink(string(target))
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		t: t, link: l, line: rand.Uint64() | 1, free: make(chan struct{}, t.cfg.Pipeline),
		sent: make(chan *future, t.cfg.Pipeline), ready: make(chan raft.AppendFuture, ready), done: make(chan struct{}),
	}
	p.ctx, p.end = context.WithCancel(t.life)
	for range t.cfg.Pipeline {
		p.free <- struct{}{}
	}
	go p.deliver()
	return p, nil
}

// AppendEntries implements raft.AppendPipeline. It waits while there are Config.Pipeline
// requests without an answer.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case <-p.free:
	case <-p.ctx.Done():
		return nil, raft.ErrPipelineShutdown
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, raft.ErrPipelineShutdown
	}
	request, err := appendAppend(nil, place{p.line, p.number}, args)
	if err != nil {
		p.free <- struct{}{}
		return nil, err
	}
	p.number++
	f := &future{start: time.Now(), args: args, resp: resp, done: make(chan struct{})}
	p.sent <- f // which has room for all
	p.calls.Add(1)
	go p.call(f, request)
	return f, nil
}

// call makes the call of a future.
func (p *pipeline) call(f *future, request []byte) {
	defer p.calls.Done()
	defer close(f.done)
	ctx, cancel := context.WithTimeout(p.t.life, p.t.cfg.Timeout)
	defer cancel()
	answer, err := p.link.call(ctx, methodAppend, request)
	if err == nil {
		err = unpack(answer, f.resp)
	}
	f.err = err
}

// deliver gives raft the futures that are done, in their order.
func (p *pipeline) deliver() {
	defer close(p.done)
	for {
		select {
		case f := <-p.sent:
			select {
			case <-f.done:
			case <-p.ctx.Done():
				return
			}
			p.free <- struct{}{}
			select {
			case p.ready <- f:
			case <-p.ctx.Done():
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.ready }

// Close implements raft.AppendPipeline. Requests that AppendEntries took go on behind it, as bytes in
// a socket do: by its last one raft tells a node that it is removed.
func (p *pipeline) Close() error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	p.end()
	<-p.done
	if !closed && p.t.goOn() {
		go p.finish()
	}
	return nil
}

// finish waits for the last requests.
func (p *pipeline) finish() {
	defer p.t.pipelines.Done()
	p.calls.Wait()
	_ = p.t.closeLink(p.link)
}
