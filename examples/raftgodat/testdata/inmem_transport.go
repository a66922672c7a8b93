package raft

import (
	"errors"
	"io"
	"sync"
	"time"
)

// Make makes the transports of raft's own tests: at an address, or with "" at any.
var Make func(at ServerAddress, timeout time.Duration) Transport

// InmemTransport is one of Make's, which reaches those peers only that the test has connected.
type InmemTransport struct {
	Transport
	mu    sync.Mutex
	peers map[ServerAddress]bool
	pipes map[*pipe]ServerAddress
}

// pipe is a pipeline, until its peer is disconnected.
type pipe struct {
	AppendPipeline
	once sync.Once
	err  error
}

func (p *pipe) Close() error {
	p.once.Do(func() { p.err = p.AppendPipeline.Close() })
	return p.err
}

var errDisconnected = errors.New("the test has not connected the peer")

func NewInmemAddr() ServerAddress { return ServerAddress(generateUUID()) }

func NewInmemTransport(at ServerAddress) (ServerAddress, *InmemTransport) {
	return NewInmemTransportWithTimeout(at, 500*time.Millisecond)
}

func NewInmemTransportWithTimeout(at ServerAddress, timeout time.Duration) (ServerAddress, *InmemTransport) {
	t := &InmemTransport{Transport: Make(at, timeout), peers: map[ServerAddress]bool{}, pipes: map[*pipe]ServerAddress{}}
	return t.LocalAddr(), t
}

func (t *InmemTransport) Connect(peer ServerAddress, _ Transport) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peers[peer] = true
}

func (t *InmemTransport) Disconnect(peer ServerAddress) { t.disconnect(peer, false) }
func (t *InmemTransport) DisconnectAll()                { t.disconnect("", true) }

func (t *InmemTransport) disconnect(peer ServerAddress, all bool) {
	t.mu.Lock()
	var ended []*pipe
	for p, to := range t.pipes {
		if all || to == peer {
			ended = append(ended, p)
			delete(t.pipes, p)
		}
	}
	delete(t.peers, peer)
	if all {
		t.peers = map[ServerAddress]bool{}
	}
	t.mu.Unlock()
	for _, p := range ended {
		_ = p.Close()
	}
}

func (t *InmemTransport) Close() error {
	t.DisconnectAll()
	return t.Transport.(WithClose).Close()
}

func (t *InmemTransport) to(peer ServerAddress, call func() error) error {
	t.mu.Lock()
	connected := t.peers[peer]
	t.mu.Unlock()
	if !connected {
		return errDisconnected
	}
	return call()
}

func (t *InmemTransport) AppendEntriesPipeline(id ServerID, to ServerAddress) (made AppendPipeline, err error) {
	err = t.to(to, func() error {
		p, err := t.Transport.AppendEntriesPipeline(id, to)
		if err != nil {
			return err
		}
		one := &pipe{AppendPipeline: p}
		made = one
		t.mu.Lock()
		t.pipes[one] = to
		t.mu.Unlock()
		return nil
	})
	return made, err
}

func (t *InmemTransport) AppendEntries(id ServerID, to ServerAddress, q *AppendEntriesRequest, a *AppendEntriesResponse) error {
	return t.to(to, func() error { return t.Transport.AppendEntries(id, to, q, a) })
}

func (t *InmemTransport) RequestVote(id ServerID, to ServerAddress, q *RequestVoteRequest, a *RequestVoteResponse) error {
	return t.to(to, func() error { return t.Transport.RequestVote(id, to, q, a) })
}

func (t *InmemTransport) RequestPreVote(id ServerID, to ServerAddress, q *RequestPreVoteRequest, a *RequestPreVoteResponse) error {
	return t.to(to, func() error { return t.Transport.(WithPreVote).RequestPreVote(id, to, q, a) })
}

func (t *InmemTransport) InstallSnapshot(id ServerID, to ServerAddress, q *InstallSnapshotRequest, a *InstallSnapshotResponse, data io.Reader) error {
	return t.to(to, func() error { return t.Transport.InstallSnapshot(id, to, q, a, data) })
}

func (t *InmemTransport) TimeoutNow(id ServerID, to ServerAddress, q *TimeoutNowRequest, a *TimeoutNowResponse) error {
	return t.to(to, func() error { return t.Transport.TimeoutNow(id, to, q, a) })
}
