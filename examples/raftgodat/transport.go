package raftgodat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	dat "godat/runtime"
	"godat/runtime/rpc"
)

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// errClosed is why calls of a transport that was closed fail.
var errClosed = fmt.Errorf("raftgodat: %w: %w", raft.ErrTransportShutdown, net.ErrClosed)

// Transport is a raft.Transport. Its methods may be called from any goroutine. Raft closes it when it
// is shut down.
type Transport struct {
	// Immutable after New.
	ia     *dat.IA
	cfg    Config
	server *rpc.Server
	rpcs   chan raft.RPC
	life   context.Context // ends with Close
	end    context.CancelFunc
	served chan struct{}  // closed when no request is handled any more
	tasks  sync.WaitGroup // requests that are handled

	pipelines sync.WaitGroup // those that finish; none begins to when closed is set

	mu        sync.Mutex
	closed    bool
	heartbeat func(raft.RPC)
	peers     map[raft.ServerAddress]*peer
	links     map[*link]bool       // of the peers and of pipelines
	lines     map[uint64]*line     // of pipelines of others
	snapshots map[uint64]*incoming // that others send
}

// New listens at an address, as godat/runtime.IA.Listen takes it. ctx bounds the call.
func New(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Transport, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	server, err := rpc.Listen(ctx, ia, address, rpc.Config{Calls: mostPipeline, Message: message, Conns: cfg.Peers})
	if err != nil {
		return nil, err
	}
	if cfg.Advertise == "" {
		cfg.Advertise = raft.ServerAddress(server.Addr())
	}
	t := &Transport{
		ia: ia, cfg: cfg, server: server, rpcs: make(chan raft.RPC), served: make(chan struct{}),
		peers: make(map[raft.ServerAddress]*peer), links: make(map[*link]bool), lines: make(map[uint64]*line), snapshots: make(map[uint64]*incoming),
	}
	t.life, t.end = context.WithCancel(context.Background())
	go t.serve()
	return t, nil
}

// Consumer implements raft.Transport.
func (t *Transport) Consumer() <-chan raft.RPC { return t.rpcs }

// LocalAddr implements raft.Transport.
func (t *Transport) LocalAddr() raft.ServerAddress { return t.cfg.Advertise }

// EncodePeer implements raft.Transport.
func (t *Transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer implements raft.Transport.
func (t *Transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler implements raft.Transport. The handler answers before it returns, or not
// at all.
func (t *Transport) SetHeartbeatHandler(handler func(raft.RPC)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heartbeat = handler
}

// AppendEntries implements raft.Transport.
func (t *Transport) AppendEntries(_ raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	p, err := t.peer(target)
	if err != nil {
		return err
	}
	request, err := appendAppend(nil, place{}, args)
	if err != nil {
		return err
	}
	if isHeartbeat(args) {
		return t.exchange(p.beats, methodHeartbeat, request, resp)
	}
	return t.exchange(p.calls, methodAppend, request, resp)
}

// RequestVote implements raft.Transport.
func (t *Transport) RequestVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.ask(target, methodVote, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (t *Transport) RequestPreVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.ask(target, methodPreVote, args, resp)
}

// TimeoutNow implements raft.Transport.
func (t *Transport) TimeoutNow(_ raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.ask(target, methodTimeoutNow, args, resp)
}

// ask makes a request that is a structure of raft's.
func (t *Transport) ask(target raft.ServerAddress, method uint16, args, resp any) error {
	p, err := t.peer(target)
	if err != nil {
		return err
	}
	request, err := pack(nil, args)
	if err != nil {
		return err
	}
	return t.exchange(p.calls, method, request, resp)
}

// exchange makes a request within Config.Timeout, and decodes the answer.
func (t *Transport) exchange(l *link, method uint16, request []byte, resp any) error {
	ctx, cancel := context.WithTimeout(t.life, t.cfg.Timeout)
	defer cancel()
	answer, err := l.call(ctx, method, request)
	if err != nil {
		return err
	}
	return unpack(answer, resp)
}

// peer is the peer with an address.
func (t *Transport) peer(address raft.ServerAddress) (*peer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	p := t.peers[address]
	if p == nil {
		p = &peer{t.addLink(string(address)), t.addLink(string(address))}
		t.peers[address] = p
	}
	return p, nil
}

// newLink is a link to an address, until closeLink.
func (t *Transport) newLink(address string) (*link, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	return t.addLink(address), nil
}

// addLink makes a link. The caller holds the lock.
func (t *Transport) addLink(address string) *link {
	l := &link{t: t, address: address}
	t.links[l] = true
	return l
}

// goOn counts a pipeline that finishes. It reports false if the transport is closed, which ends all
// requests.
func (t *Transport) goOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.pipelines.Add(1)
	}
	return !t.closed
}

func (t *Transport) closeLink(l *link) error {
	t.mu.Lock()
	delete(t.links, l)
	t.mu.Unlock()
	return l.close()
}

// Close ends all connections, and the requests that are under way. Requests that came and that
// raft has not answered are given up; nobody waits for raft.
func (t *Transport) Close() error {
	t.mu.Lock()
	closed, links := t.closed, slices.Collect(maps.Keys(t.links))
	t.closed = true
	t.mu.Unlock()
	if closed {
		<-t.served
		return nil
	}
	t.end()
	var errs []error
	for _, l := range links {
		errs = append(errs, l.close())
	}
	t.pipelines.Wait()
	err := t.server.Close()
	<-t.served
	return errors.Join(append(errs, err)...)
}

// restoreTime is how long raft may take to restore a snapshot of that size.
func (cfg *Config) restoreTime(size int64) time.Duration {
	return cfg.Timeout * time.Duration(1+max(size, 0)/restoreUnit)
}
