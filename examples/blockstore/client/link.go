// Package client moves blocks to and from a block store's server.
//
// A [Link] is a connection, and one goroutine uses it. Its requests use its slots in turn, each
// of which has a block of registered memory. At most as many requests as slots are under way,
// and they end in the order in which they began:
//
//	          oldest                    next
//	            ▼                        ▼
//	┌─────┬─────┬─────┬─────┬─────┬─────┬─────┐
//	│ free│ under way ............. │ free... │
//	└─────┴─────┴─────┴─────┴─────┴─────┴─────┘
package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/report"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

var (
	// ErrStalled says that the server has owed an answer for too long.
	ErrStalled = errors.New("the server does not answer")

	errMalformed = errors.New("not an answer of a block store")
)

// Config says where the server is, and which limits the client wants.
type Config struct {
	Addr   string       // host:port
	Limits proto.Limits // the server may give less
	// Stall is how long the server may owe an answer, and how long connecting may take.
	// 0 means 30 seconds.
	Stall time.Duration
}

// Link is a connection to a server.
type Link struct {
	// OnDone, if set, is called with each PUT and GET that the server has answered, in the
	// order in which they began. Its error is returned by the call during which it ran.
	OnDone func(*Slot) error
	// Latency has one entry for each PUT and GET that ended well.
	Latency *report.Latency

	stall  time.Duration
	rpc    *rpc.Client
	pz     *mem.PZ
	memory *mem.LMR

	slots        []Slot
	oldest, next uint64       // requests from oldest up to next are under way
	begun        chan request // to the callers
	callers      sync.WaitGroup
}

// Slot is a request and its block of memory. It is the program's between a call of Link.Slot
// and the next Put or Get, and during OnDone.
type Slot struct {
	Buf []byte // as long as the longest block; registered memory
	N   int    // length of the block in bytes
	ID  block.ID
	Ref Ref   // the program's own
	Err error // the server's

	at    int        // of Buf in the link's memory
	ended chan error // why there is no answer, or nil
	took  time.Duration
}

// request is a PUT or GET that has begun.
type request struct {
	ctx  context.Context
	slot *Slot
	call rpc.Call
}

// Ref says which block of which file the program put or asked for.
type Ref struct{ File, Block int }

// Dial connects to a server. The link's memory is in a zone of its own.
func Dial(ctx context.Context, ia *dat.IA, cfg Config) (l *Link, err error) {
	l = &Link{stall: cfg.Stall, Latency: report.NewLatency(), begun: make(chan request, cfg.Limits.Slots)}
	if l.stall <= 0 {
		l.stall = 30 * time.Second
	}
	if l.pz, err = ia.NewPZ(); err == nil {
		err = l.dial(ctx, ia, cfg)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("client: connect to %s: %w", cfg.Addr, err), l.Close())
	}
	return l, nil
}

func (l *Link) dial(ctx context.Context, ia *dat.IA, cfg Config) (err error) {
	brief, cancel := context.WithTimeoutCause(ctx, l.stall, ErrStalled)
	defer cancel()
	l.rpc, err = rpc.Dial(brief, ia, cfg.Addr, rpc.Config{Calls: cfg.Limits.Slots, Message: proto.Message, PZ: l.pz, Methods: proto.Methods})
	if err != nil {
		return err
	}
	answer, err := l.ask(brief, rpc.Call{Method: proto.Open}, proto.LimitsLen)
	if err != nil {
		return err
	}
	most, err := proto.ParseLimits(answer)
	if err != nil {
		return err
	}
	n, size := min(cfg.Limits.Slots, most.Slots), min(cfg.Limits.Block, most.Block)
	l.memory, err = l.pz.Register(make([]byte, n*size), hw.LocalRead|hw.LocalWrite|hw.RemoteRead|hw.RemoteWrite)
	if err != nil {
		return err
	}
	l.slots = make([]Slot, n)
	for i := range l.slots {
		at := i * size
		l.slots[i] = Slot{Buf: l.memory.Bytes()[at : at+size : at+size], at: at, ended: make(chan error, 1)}
		l.callers.Go(l.callAll)
	}
	return nil
}

// Close ends the connection and frees the memory. Requests under way are lost.
func (l *Link) Close() error {
	var err error
	if l.rpc != nil {
		err = l.rpc.Close()
	}
	close(l.begun)
	l.callers.Wait()
	if l.memory != nil {
		err = errors.Join(err, l.memory.Free())
	}
	if l.pz != nil {
		err = errors.Join(err, l.pz.Close())
	}
	return err
}

// Limits are those of both the client and the server.
func (l *Link) Limits() proto.Limits {
	return proto.Limits{Slots: len(l.slots), Block: len(l.slots[0].Buf)}
}

// Slot waits until a slot is free. The next Put or Get takes it.
func (l *Link) Slot() (*Slot, error) {
	if l.next-l.oldest == uint64(len(l.slots)) {
		if err := l.finish(); err != nil {
			return nil, err
		}
	}
	return l.slot(l.next), nil
}

// Drain waits until no request is under way.
func (l *Link) Drain() error {
	for l.oldest != l.next {
		if err := l.finish(); err != nil {
			return err
		}
	}
	return nil
}

// Put asks the server to store the first n bytes of the slot's memory, and returns the
// name of that block.
func (l *Link) Put(ctx context.Context, s *Slot, n int, ref Ref) block.ID {
	s.N, s.ID, s.Ref = n, block.IDOf(s.Buf[:n]), ref
	l.begin(ctx, s, rpc.Call{Method: proto.Put, Payload: s.ID[:], Source: l.memory.Remote(s.at, n)})
	return s.ID
}

// Get asks the server for a block, which goes into the slot's memory.
func (l *Link) Get(ctx context.Context, s *Slot, id block.ID, ref Ref) {
	s.N, s.ID, s.Ref = 0, id, ref
	l.begin(ctx, s, rpc.Call{Method: proto.Get, Payload: s.ID[:], Sink: l.memory.Remote(s.at, len(s.Buf))})
}

// SetRoot makes id the store's root.
func (l *Link) SetRoot(ctx context.Context, id block.ID) error {
	_, err := l.ask(ctx, rpc.Call{Method: proto.SetRoot, Payload: id[:]}, 0)
	return err
}

// Root asks for the store's root.
func (l *Link) Root(ctx context.Context) (id block.ID, err error) {
	answer, err := l.ask(ctx, rpc.Call{Method: proto.Root}, len(id))
	copy(id[:], answer)
	return id, err
}

func (l *Link) slot(n uint64) *Slot { return &l.slots[n%uint64(len(l.slots))] }

func (l *Link) begin(ctx context.Context, s *Slot, call rpc.Call) {
	l.next++
	l.begun <- request{ctx, s, call} // has room for each slot
}

// callAll is a caller: one goroutine of as many as slots. Close ends it.
func (l *Link) callAll() {
	for r := range l.begun {
		l.call(r.ctx, r.slot, r.call)
	}
}

func (l *Link) call(ctx context.Context, s *Slot, call rpc.Call) {
	began, length := time.Now(), 0
	if call.Method == proto.Get {
		length = 4
	}
	answer, err := l.ask(ctx, call, length)
	s.took = time.Since(began)
	if err == nil && call.Method == proto.Get {
		if s.N = int(binary.BigEndian.Uint32(answer)); s.N > len(s.Buf) {
			s.N, err = 0, errMalformed
		}
	}
	var failed *rpc.Error
	if s.Err = nil; errors.As(err, &failed) {
		s.Err, err = failed, nil
	}
	s.ended <- err
}

// ask makes a call, whose answer has n bytes.
func (l *Link) ask(ctx context.Context, call rpc.Call, n int) ([]byte, error) {
	brief, cancel := context.WithTimeoutCause(ctx, l.stall, ErrStalled)
	defer cancel()
	answer, err := l.rpc.Call(brief, call, nil)
	switch {
	case err == nil && len(answer) != n:
		err = errMalformed
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil: // the server noticed before this timer ran
		err = fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return answer, err
}

// finish waits for the end of the oldest request.
func (l *Link) finish() error {
	s := l.slot(l.oldest)
	l.oldest++
	if err := <-s.ended; err != nil {
		return err
	}
	if s.Err == nil {
		l.Latency.Record(s.took)
	}
	if l.OnDone == nil {
		return nil
	}
	return l.OnDone(s)
}
