package raftgodat

import (
	"context"
	"errors"
	"sync"

	"godat/runtime/rpc"
)

// link is a connection to a peer, which is made when a call needs it. Its methods may be called
// from any goroutine.
type link struct {
	t       *Transport // immutable
	address string     // immutable

	mu      sync.Mutex
	now     *session
	dialing chan struct{} // closed when the call that makes a connection has ended; nil without one
	closed  bool
	calls   sync.WaitGroup // none begins when closed is set
}

// session is a connection of a link. While calls use it their memory is in its zone, so the last
// one closes it.
type session struct {
	client *rpc.Client
	users  int  // guarded by the link
	gone   bool // no further call uses it; guarded by the link
}

// peer is another node: the heartbeats have a connection of their own.
type peer struct{ calls, beats *link }

// acquire is the connection for a call; acquire makes one if there is none. While one call makes it, each other waits no
// longer than its own context.
func (l *link) acquire(ctx context.Context) (*session, error) {
	for {
		s, dialing, err := l.use()
		if s != nil || err != nil {
			return s, err
		}
		if dialing == nil {
			return l.dial(ctx)
		}
		select {
		case <-dialing:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// use begins a call by the connection that is there, or returns what the caller is to wait for; if that is nil, too, the
// caller is to dial.
func (l *link) use() (s *session, dialing <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, errClosed
	case l.now == nil && l.dialing != nil:
		return nil, l.dialing, nil
	}
	l.calls.Add(1)
	if l.now != nil {
		l.now.users++
		return l.now, nil, nil
	}
	l.dialing = make(chan struct{})
	return nil, nil, nil
}

// dial makes the connection for a call that has begun.
func (l *link) dial(ctx context.Context) (*session, error) {
	c, err := rpc.Dial(ctx, l.t.ia, l.address, rpc.Config{Calls: mostPipeline, Message: message})
	l.mu.Lock()
	close(l.dialing)
	l.dialing = nil
	if err == nil && !l.closed {
		l.now = &session{client: c, users: 1}
		defer l.mu.Unlock()
		return l.now, nil
	}
	l.mu.Unlock()
	if err == nil {
		err = errors.Join(errClosed, c.Close())
	}
	l.calls.Done()
	return nil, err
}

// release ends the use of a connection. If that gave no answer, the next call makes another one.
func (l *link) release(s *session, failed bool) error {
	l.mu.Lock()
	s.users--
	if failed {
		s.gone = true
		if l.now == s {
			l.now = nil
		}
	}
	last := s.gone && s.users == 0
	l.mu.Unlock()
	if last {
		return s.client.Close()
	}
	return nil
}

// close ends the connection, and the calls that are under way.
func (l *link) close() error {
	l.mu.Lock()
	l.closed = true
	s := l.now
	if s != nil {
		s.users++
	}
	l.mu.Unlock()
	if s != nil {
		_ = s.client.Close() // ends the calls; their memory may be in the zone still
	}
	l.calls.Wait()
	if s == nil {
		return nil
	}
	return l.release(s, true)
}

// call makes a call with a request, which goes inside the message if it is short enough.
func (l *link) call(ctx context.Context, method uint16, request []byte) ([]byte, error) {
	if len(request) <= message {
		return l.do(ctx, rpc.Call{Method: method, Payload: request})
	}
	return l.do(ctx, rpc.Call{Method: method, SourceBytes: request})
}

func (l *link) do(ctx context.Context, call rpc.Call) ([]byte, error) {
	s, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer l.calls.Done()
	answer, err := s.client.Call(ctx, call, nil)
	var unanswered *rpc.CallError // also after a time-out: a cut may have healed for a new connection only
	if failed := l.release(s, errors.As(err, &unanswered)); err == nil {
		err = failed
	}
	return answer, explain(err)
}
