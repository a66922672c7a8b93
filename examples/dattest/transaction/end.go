package transaction

import (
	"context"
	"fmt"

	"godat/ep"
	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/mem"
)

// The buffers of an endpoint's control messages, which are also their cookies.
const (
	memorySend = iota
	memoryRecv
	syncSend
	syncRecv
	finalSend
	finalRecv
	controls
)

const syncSize = 64

// opCookie is the first cookie of the operations.
const opCookie = 1 << 32

// end is one endpoint of a thread, with the memory of all operations.
type end struct {
	t        *thread
	index    int
	link     *link.Link
	control  *link.Pool
	pools    []*link.Pool // by operation
	remote   []wire.Memory
	deferred []link.Completion // sends to reap later, in the order posted
}

// open makes an endpoint. On a server it also listens.
func (t *thread) open(pz *mem.PZ, index int) (*end, error) {
	test, segments := t.side.Test, 1
	for _, o := range test.Ops {
		segments = max(segments, int(o.Segments))
	}
	// Three more: one for the message about memory, and two for the synchronizations.
	depth := max(16, len(test.Ops)+3)
	l, err := link.New(t.side.IA, pz, link.Config{Recvs: depth, Requests: depth, Segments: segments, Poll: test.Poll, CNO: t.cno})
	if err != nil {
		return nil, err
	}
	e := &end{t: t, index: index, link: l}
	if err := e.prepare(); err != nil {
		_ = l.Close() // the first error says more
		return nil, err
	}
	return e, nil
}

func (e *end) prepare() (err error) {
	if e.control, err = e.link.NewPool(wire.AllMemorySize, controls); err != nil {
		return err
	}
	for _, o := range e.t.side.Test.Ops {
		p, err := e.link.NewPool(int(o.Size), int(o.Segments))
		if err != nil {
			return err
		}
		e.pools = append(e.pools, p)
	}
	if !e.t.side.Server {
		return nil // a client posts when it connects
	}
	if err := e.postControls(); err != nil {
		return err
	}
	return e.link.Listen(e.port(), e.t.side.Test.RSP)
}

func (e *end) postControls() error {
	if err := e.link.PostRecv(e.control, memoryRecv, wire.AllMemorySize); err != nil {
		return err
	}
	return e.link.PostRecv(e.control, syncRecv, syncSize)
}

// number is the number of the endpoint among all endpoints of the side.
func (e *end) number() int { return e.t.index*int(e.t.side.Test.EPs) + e.index }

// port is the port that the server's endpoint listens on; 0 if the provider chooses.
func (e *end) port() uint64 {
	switch s := e.t.side; {
	case s.Ports != nil:
		return s.Ports[e.number()]
	case s.Port != 0:
		return s.Port + uint64(e.number())
	}
	return 0
}

// connect connects, and both sides tell each other which memory they have for RDMA. The
// client sends first, as iWARP wants it.
func (e *end) connect(ctx context.Context) error {
	s := e.t.side
	if s.Server {
		if err := e.link.Accept(ctx, wire.PrivateData); err != nil {
			return err
		}
		if err := e.recvMemory(ctx); err != nil {
			return err
		}
		return e.sendMemory(ctx)
	}
	if err := e.link.Connect(ctx, s.Addr, e.port(), wire.PrivateData, e.postControls); err != nil {
		return err
	}
	if err := e.sendMemory(ctx); err != nil {
		return err
	}
	return e.recvMemory(ctx)
}

func (e *end) disconnect(ctx context.Context) error {
	if !e.t.side.Graceful {
		return e.link.Disconnect(ctx, ep.Abrupt)
	}
	if !e.t.side.Server {
		if err := e.link.EP.Disconnect(ep.Graceful); err != nil {
			return err
		}
	}
	return e.link.Ended(ctx)
}

func (e *end) sendMemory(ctx context.Context) error {
	msg := e.control.Buffer(memorySend)[:0]
	for i, o := range e.t.side.Test.Ops {
		var m wire.Memory
		if o.Transfer != wire.SendRecv && !e.ours(o) {
			r := e.pools[i].Remote(o.Bytes())
			m = wire.Memory{Context: r.Context, Addr: r.Addr}
		}
		msg = wire.AppendMemory(msg, m)
	}
	if err := e.link.PostSend(e.control, memorySend, wire.AllMemorySize); err != nil {
		return err
	}
	return e.sent(ctx, memorySend, wire.AllMemorySize)
}

func (e *end) recvMemory(ctx context.Context) (err error) {
	if err = e.link.Received(ctx, memoryRecv, wire.AllMemorySize); err != nil {
		return fmt.Errorf("the peer's memory: %w", err)
	}
	e.remote, err = wire.ParseMemory(e.control.Buffer(memoryRecv), len(e.t.side.Test.Ops))
	return err
}

// ours reports whether this side begins the operation.
func (e *end) ours(o wire.Op) bool { return o.Server == e.t.side.Server }

// reapRequest waits for the completion of a request, and before it for those of the
// sends that were put off.
func (e *end) reapRequest(ctx context.Context, want link.Completion) error {
	if err := e.reapDeferred(ctx); err != nil {
		return err
	}
	return e.link.Reap(ctx, e.link.Request, want)
}

// sent is reapRequest for a control message.
func (e *end) sent(ctx context.Context, buffer, length int) error {
	return e.reapRequest(ctx, link.Completion{Op: hw.OpSend, Cookie: uint64(buffer), Length: length})
}

func (e *end) reapDeferred(ctx context.Context) error {
	for len(e.deferred) > 0 {
		r := e.deferred[0]
		e.deferred = e.deferred[1:]
		if err := e.link.Reap(ctx, e.link.Request, r); err != nil {
			return err
		}
	}
	return nil
}
