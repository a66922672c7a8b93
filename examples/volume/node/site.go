package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/replica"
	"godat/examples/volume/state"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// site is what the rooms of a node share.
type site struct {
	// Immutable.
	cfg     Config
	terms   Terms
	digest  [termsLen]byte // of terms
	ia      *dat.IA
	log     *raftlog.Log
	journal *journal.Journal
	disk    *state.Disk
	zone    *mem.PZ
	region  *mem.LMR // the journal
	annex   []byte   // rooms for the data of hosts' writes that go to a leader
	annexed *mem.LMR
	server  *rpc.Server
	events  mailbox       // of consensus
	wake    chan struct{} // of the rebuilder
	ctx     context.Context
	end     context.CancelCauseFunc
	tasks   sync.WaitGroup

	leader   atomic.Uint64 // the leader that consensus knows of, or 0
	floor    atomic.Uint64 // up to where the leader has freed
	released atomic.Uint64 // up to where this node has, and its engine knows that it has applied that
	rotten   atomic.Bool
	ahead    atomic.Pointer[aheadOf] // of a node that is ahead of its leader
	rebuilt  atomic.Uint64           // bytes of the disk, while it is rebuilt
	rebuilds atomic.Uint64           // all of them
	counts   counts
	// How long the log and the slots take, and the disk's file, also while it is rebuilt.
	keeping, releasing, catching pace
	refusals                     refusals
	ways                         ways
	health                       health
	began                        time.Time
	knowing                      sync.Mutex // held while what is known of a node changes
}

func newSite(ia *dat.IA, cfg Config, j *journal.Journal, r *replica.Replica) *site {
	s := &site{cfg: cfg, ia: ia, log: cfg.Log, journal: j, disk: r.Disk(), events: newMailbox(), wake: make(chan struct{}, 1), annex: make([]byte, rooms*cfg.Layout.SlotSize)}
	s.began = time.Now()
	s.terms = cfg.terms(len(s.disk.Memory()))
	s.digest = s.terms.digest()
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.rotten.Store(r.Rotten() || len(s.log.Members()) == 0)
	if r.Rotten() && !errors.Is(s.disk.Ready(), state.ErrCatchingUp) {
		cfg.Logger.Warn("a slot has lost data that was acknowledged: the disk is rebuilt", "node", cfg.ID)
	}
	return s
}

// connect makes the memory and the server.
func (s *site) connect(ctx context.Context) (err error) {
	if s.zone, err = s.ia.NewPZ(); err != nil {
		return err
	}
	s.region, err = s.zone.Register(s.journal.Memory(), hw.LocalRead|hw.LocalWrite|hw.RemoteRead)
	if err == nil {
		s.annexed, err = s.zone.Register(s.annex, hw.LocalRead|hw.LocalWrite|hw.RemoteRead)
	}
	if err == nil {
		s.server, err = rpc.Listen(ctx, s.ia, s.cfg.Addr, s.rpc())
	}
	if err != nil {
		return errors.Join(err, s.disconnect())
	}
	return nil
}

func (s *site) rpc() rpc.Config {
	return rpc.Config{Calls: calls, Message: mostMessage, PZ: s.zone, Stall: s.cfg.stall, Methods: methods}
}

const mostStall = 2 * time.Second

// disconnect is the end of connect.
func (s *site) disconnect() error {
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	for _, r := range []*mem.LMR{s.region, s.annexed} {
		if r != nil {
			errs = append(errs, r.Free())
		}
	}
	return errors.Join(append(errs, s.zone.Close())...)
}

// fail ends the node: it can't go on.
func (s *site) fail(err error) {
	s.cfg.Logger.Error("the node ends", "error", err)
	s.end(err)
}

// ask runs a function in the goroutine of a mailbox and waits for it. It reports false if the node
// ends first.
func (s *site) ask(m mailbox, f func()) bool {
	done := make(chan struct{})
	m.put(func() {
		f()
		close(done)
	})
	select {
	case <-done:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// note is what a message of this node to another one begins with.
func (s *site) note(to uint64) []byte {
	x := note{
		magic: noteMagic, version: wireVersion, volume: s.cfg.Layout.Volume, terms: s.digest,
		from: s.cfg.ID, to: to, released: s.released.Load(), floor: s.floor.Load(), rotten: s.rotten.Load(),
	}
	return x.append(make([]byte, 0, noteLen))
}

// dial connects to another node, and says hello.
func (s *site) dial(ctx context.Context, id uint64, addr string) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	client, err := rpc.Dial(ctx, s.ia, addr, s.rpc())
	if err != nil {
		return nil, err
	}
	if here, err := s.greet(ctx, client, id); err != nil {
		var unknown *rpc.Error
		if errors.As(err, &unknown) && unknown.Code != errStranger.Code {
			err = stranger("node %d does not understand a hello, as a node of an earlier version: %v", id, err)
		}
		s.refused(id, addr, here, err)
		_ = client.Close() // its memory is the node's
		return nil, err
	}
	return client, nil
}
