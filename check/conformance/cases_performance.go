package conformance

import (
	"context"
	"fmt"

	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// stream is one of the C library's performance tests: RDMA of one kind, so many
// outstanding at a time. The suite looks whether all is right; package bench and
// examples/dattest tell how fast it is.
type stream struct {
	op               dat.Op
	size, segs       int
	count, pipelined int // before scaling
	poll             bool
}

var performanceCases = []Case{
	streamCase("PF-rw", "writes of two segments, waited for", stream{op: dat.OpWrite, size: 4096, segs: 2, count: 2048, pipelined: 1}),
	streamCase("PF-rr", "long reads, waited for", stream{op: dat.OpRead, size: 32768, segs: 1, count: 4096, pipelined: 1}),
	streamCase("PF-rw4", "writes of four long segments, waited for", stream{op: dat.OpWrite, size: 32768, segs: 4, count: 4096, pipelined: 1}),
	streamCase("PF-bw", "sixteen long writes outstanding, waited for", stream{op: dat.OpWrite, size: 65536, segs: 2, count: 2048, pipelined: 16}),
	streamCase("PF-latb", "writes of four bytes, waited for", stream{op: dat.OpWrite, size: 4, segs: 1, count: 8192, pipelined: 1}),
	streamCase("PF-latp", "writes of four bytes, polled for", stream{op: dat.OpWrite, size: 4, segs: 1, count: 100000, pipelined: 1, poll: true}),
}

func streamCase(id, claim string, s stream) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) { require.NoError(r, s.run(r)) }}
}

func (s stream) run(r *rig) error {
	bytes := s.size * s.segs
	p := newParty(r.node(), &mix{eps: 1, poll: s.poll, ops: []transaction{{op: s.op, size: s.size, segs: s.segs}}}, byClient)
	q := newParty(r.node(), &mix{eps: 1, ops: p.m.ops}, byServer)
	p.join(q, 0)
	l := p.links[0]
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	done := func(i int) error { return p.completed(ctx, l, l.req, uint64(i), s.op, bytes) }
	count := r.p.Scale.of(s.count, 16)
	for i := range count + s.pipelined {
		if i >= s.pipelined {
			if err := done(i - s.pipelined); err != nil {
				return fmt.Errorf("operation %d: %w", i-s.pipelined, err)
			}
		}
		if i < count {
			p.cookies = uint64(i)
			if err := p.begin(l, i, p.m.ops[0]); err != nil {
				return fmt.Errorf("operation %d: %w", i, err)
			}
		}
	}
	return nil
}
