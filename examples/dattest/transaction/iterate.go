package transaction

import (
	"context"
	"fmt"

	"godat/examples/dattest/link"
	"godat/examples/dattest/wire"
	"godat/hw"
	"godat/mem"
)

// iterate runs the iterations of the test.
func (t *thread) iterate(ctx context.Context) error {
	test := t.side.Test
	for i := range test.Iterations {
		last := i+1 == test.Iterations
		if last {
			if err := t.each(func(e *end) error { return e.link.PostRecv(e.control, finalRecv, syncSize) }); err != nil {
				return err
			}
		}
		for op, o := range test.Ops {
			if err := t.do(ctx, op, o, last); err != nil {
				return fmt.Errorf("iteration %d, operation %d (%v): %w", i, op, o.Transfer, err)
			}
			if err := t.validate(op, i); err != nil {
				return fmt.Errorf("iteration %d: %w", i, err)
			}
		}
	}
	t.stats.Ops += uint64(test.Iterations) * uint64(len(test.Ops)) * uint64(test.EPs)
	return t.sync(ctx, finalSend, finalRecv, func() error { return nil })
}

// do does one operation on all endpoints: it posts the operation on each, and then
// reaps the completions.
func (t *thread) do(ctx context.Context, op int, o wire.Op, last bool) error {
	ours := o.Server == t.side.Server
	t.stats.count(o, ours, len(t.ends))
	switch {
	case ours:
		if err := t.each(func(e *end) error { return e.post(op, o) }); err != nil {
			return err
		}
		return t.each(func(e *end) error {
			want := link.Completion{Op: opOf(o), Cookie: opCookie + uint64(op), Length: o.Bytes()}
			if o.Transfer == wire.SendRecv && o.ReapOnRecv && !o.Server {
				e.deferred = append(e.deferred, want)
				return nil
			}
			return e.reapRequest(ctx, want)
		})
	case o.Transfer != wire.SendRecv:
		return nil // the peer reads or writes without this side
	}
	return t.each(func(e *end) error {
		if err := e.link.Reap(ctx, e.link.Recv, link.Completion{Op: hw.OpRecv, Cookie: opCookie + uint64(op), Length: o.Bytes()}); err != nil {
			return err
		}
		if o.ReapOnRecv && o.Server {
			if err := e.reapDeferred(ctx); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		return e.postRecv(op)
	})
}

// opOf is the operation that a completion names.
func opOf(o wire.Op) hw.Op {
	switch o.Transfer {
	case wire.RDMARead:
		return hw.OpRead
	case wire.RDMAWrite:
		return hw.OpWrite
	default:
		return hw.OpSend
	}
}

// post posts an operation.
func (e *end) post(op int, o wire.Op) error {
	cookie, segs := opCookie+uint64(op), e.pools[op].Segments()
	m := e.remote[op]
	remote := mem.RemoteSegment{Addr: m.Addr, Len: uint32(o.Bytes()), Context: m.Context}
	switch o.Transfer {
	case wire.RDMARead:
		return e.link.EP.PostRDMARead(cookie, hw.Default, remote, e.sink(op, o)...)
	case wire.RDMAWrite:
		return e.link.EP.PostRDMAWrite(cookie, hw.Default, remote, segs...)
	default:
		return e.link.EP.PostSend(cookie, hw.Default, segs...)
	}
}

// sink is the target of a read: all buffers; or, on a device that does not scatter a
// read to as many, the beginning of the region.
func (e *end) sink(op int, o wire.Op) []mem.Segment {
	segs := e.pools[op].Segments()
	if o.Transfer == wire.RDMARead && len(segs) > e.t.side.IA.Attr().MaxReadSegments {
		return []mem.Segment{e.pools[op].Segment(o.Bytes())}
	}
	return segs
}

// postRecvs posts a receive for each send of the peer.
func (e *end) postRecvs() error {
	for op, o := range e.t.side.Test.Ops {
		if o.Transfer == wire.SendRecv && !e.ours(o) {
			if err := e.postRecv(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *end) postRecv(op int) error {
	return e.link.EP.PostRecv(opCookie+uint64(op), hw.Default, e.pools[op].Segments()...)
}
