// Package performance is the performance test: the client makes RDMA reads or writes,
// first with the pipeline full, for the throughput, and then one at a time, for the
// latency.
package performance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"godat/ep"
	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// The buffers of the control messages.
const (
	syncSend = iota
	syncRecv
	syncs
)

const opCookie = 1 << 32

// Side is one side of a test.
type Side struct {
	IA     *dat.IA
	Test   *wire.Performance
	Server bool
	Addr   string // the server's; a client needs it
	Port   uint64 // the server's; if a server has 0, the provider chooses
	// SendDelay is how long a server waits after it has accepted the connection, before it
	// sends. On iWARP the client should send first, but in this test the server does,
	// and soft-iWARP loses a message that arrives before soft-iWARP has taken the
	// connection up.
	SendDelay time.Duration
	// Ready, of a server, is called with its port when it listens.
	Ready func(port uint64) error
}

// Run runs the side. Only a client returns Stats.
func (s *Side) Run(ctx context.Context) (stats *Stats, err error) {
	pz, err := s.IA.NewPZ()
	if err != nil {
		return nil, err
	}
	pipeline := s.pipeline()
	l, err := link.New(s.IA, pz, link.Config{
		Recvs: 4, Requests: max(pipeline, 4), Segments: int(s.Test.Op.Segments),
		Poll: s.Test.Poll && !s.Server, // a server only waits, and must not take the processor from the client
	})
	if err != nil {
		return nil, errors.Join(err, pz.Close())
	}
	defer func() { err = errors.Join(err, l.Close(), pz.Close()) }()
	t := &test{side: s, link: l, pipeline: pipeline, want: link.Completion{Op: hw.OpWrite, Cookie: opCookie, Length: s.Test.Op.Bytes()}}
	if s.Test.Op.Transfer == wire.RDMARead {
		t.want.Op = hw.OpRead
	}
	if t.control, err = l.NewPool(wire.MemorySize, syncs); err != nil {
		return nil, err
	}
	if t.pool, err = l.NewPool(int(s.Test.Op.Size), int(s.Test.Op.Segments)); err != nil {
		return nil, err
	}
	if s.Server {
		return nil, t.serve(ctx)
	}
	return t.measure(ctx)
}

// pipeline is how many operations are outstanding: as many as the command says, but no
// more than there are, and than the device can do.
func (s *Side) pipeline() int {
	a := s.IA.Attr()
	n := min(int64(s.Test.Pipeline), int64(s.Test.Iterations), int64(a.MaxDepth))
	if s.Test.Op.Transfer == wire.RDMARead {
		n = min(n, int64(max(1, a.MaxReadsOut)))
	}
	return int(n)
}

type test struct {
	side          *Side
	link          *link.Link
	control, pool *link.Pool
	pipeline      int
	remote        mem.RemoteSegment
	want          link.Completion // of each operation
}

// serve tells the client where the memory is, and waits until the client has finished.
func (t *test) serve(ctx context.Context) error {
	if err := t.postSync(); err != nil {
		return err
	}
	if err := t.link.Listen(t.side.Port, false); err != nil {
		return err
	}
	if err := t.side.Ready(t.link.Qual()); err != nil {
		return err
	}
	if err := t.link.Accept(ctx, ""); err != nil {
		return err
	}
	if err := t.delaySend(ctx); err != nil {
		return err
	}
	r := t.pool.Remote(t.side.Test.Op.Bytes())
	if err := t.send(ctx, wire.Memory{Context: r.Context, Addr: r.Addr}); err != nil {
		return err
	}
	if err := t.recv(ctx); err != nil {
		return err
	}
	return t.link.Disconnect(ctx, ep.Abrupt)
}

// TakeUpTime is a good SendDelay for iWARP, where a send can't wait for a receive: long
// compared with the time in which a kernel takes a connection up, also on an emulated
// machine.
const TakeUpTime = 500 * time.Millisecond

func (t *test) delaySend(ctx context.Context) error {
	if t.side.SendDelay == 0 {
		return nil
	}
	select {
	case <-time.After(t.side.SendDelay):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// measure is the client's part.
func (t *test) measure(ctx context.Context) (*Stats, error) {
	if err := t.link.Connect(ctx, t.side.Addr, t.side.Port, "", t.postSync); err != nil {
		return nil, err
	}
	if err := t.recv(ctx); err != nil {
		return nil, err
	}
	m, err := wire.ParseMemory(t.control.Buffer(syncRecv), 1)
	if err != nil {
		return nil, err
	}
	t.remote = mem.RemoteSegment{Addr: m[0].Addr, Len: uint32(t.side.Test.Op.Bytes()), Context: m[0].Context}
	stats := newStats(t.side.Test, t.pipeline)
	if err := t.throughput(ctx, stats); err != nil {
		return nil, fmt.Errorf("throughput: %w", err)
	}
	if err := t.latency(ctx, stats); err != nil {
		return nil, fmt.Errorf("latency: %w", err)
	}
	if err := t.send(ctx, wire.Memory{}); err != nil {
		return nil, err
	}
	return stats, t.link.Disconnect(ctx, ep.Abrupt)
}

func (t *test) postSync() error { return t.link.PostRecv(t.control, syncRecv, wire.MemorySize) }

func (t *test) send(ctx context.Context, m wire.Memory) error {
	wire.AppendMemory(t.control.Buffer(syncSend)[:0], m)
	if err := t.link.PostSend(t.control, syncSend, wire.MemorySize); err != nil {
		return err
	}
	return t.link.Sent(ctx, syncSend, wire.MemorySize)
}

func (t *test) recv(ctx context.Context) error {
	if err := t.link.Received(ctx, syncRecv, wire.MemorySize); err != nil {
		return fmt.Errorf("waiting for the peer: %w", err)
	}
	return nil
}
