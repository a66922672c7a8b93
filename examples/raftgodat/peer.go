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

	mu     sync.Mutex
	now    *session
	closed bool
	calls  sync.WaitGroup // none begins when closed is set
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

// acquire is the connection for a call; acquire makes one if there is none.
func (l *link) acquire(ctx context.Context) (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.now == nil {
		c, err := rpc.Dial(ctx, l.t.ia, l.address, rpc.Config{Calls: mostPipeline, Message: message})
		if err != nil {
			return nil, err
		}
		l.now = &session{client: c}
	}
	l.now.users++
	l.calls.Add(1)
	return l.now, nil
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
