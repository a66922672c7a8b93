package link

import (
	"context"

	"godat/hw"
	"godat/mem"
)

// alignment of the buffers of a pool.
const alignment = 256

// Pool is a region with some buffers of one size. They begin at multiples of the
// alignment, as in the C program. It lives as long as its link.
type Pool struct {
	lmr          *mem.LMR
	size, stride int
	segments     []mem.Segment
}

// NewPool makes n buffers of size bytes.
func (l *Link) NewPool(size, n int) (*Pool, error) {
	stride := (size + alignment - 1) / alignment * alignment
	lmr, err := l.pz.Alloc(stride*n, hw.AllPrivileges, mem.WithAlignment(max(alignment, 4096)))
	if err != nil {
		return nil, err
	}
	p := &Pool{lmr: lmr, size: size, stride: stride}
	for i := range n {
		p.segments = append(p.segments, p.lmr.Segment(i*stride, size))
	}
	l.pools = append(l.pools, p)
	return p, nil
}

// Buffer is the memory of buffer i.
func (p *Pool) Buffer(i int) []byte { return p.lmr.Bytes()[i*p.stride:][:p.size] }

// Segments are all buffers.
func (p *Pool) Segments() []mem.Segment { return p.segments }

// Segment is the first n bytes of the region as one segment.
func (p *Pool) Segment(n int) mem.Segment { return p.lmr.Segment(0, n) }

// Remote is the first n bytes of the region for a peer.
func (p *Pool) Remote(n int) mem.RemoteSegment { return p.lmr.Remote(0, n) }

// PostRecv posts a receive into the first n bytes of buffer i. The cookie is i.
func (l *Link) PostRecv(p *Pool, i, n int) error {
	return l.EP.PostRecv(uint64(i), hw.Default, p.lmr.Segment(i*p.stride, n))
}

// PostSend sends the first n bytes of buffer i. The cookie is i.
func (l *Link) PostSend(p *Pool, i, n int) error {
	return l.EP.PostSend(uint64(i), hw.Default, p.lmr.Segment(i*p.stride, n))
}

// Sent waits for the completion of a PostSend.
func (l *Link) Sent(ctx context.Context, i, n int) error {
	return l.Reap(ctx, l.Request, Completion{hw.OpSend, uint64(i), n})
}

// Received waits for the completion of a PostRecv.
func (l *Link) Received(ctx context.Context, i, n int) error {
	return l.Reap(ctx, l.Recv, Completion{hw.OpRecv, uint64(i), n})
}

// Bytes is the region's memory, with all buffers and the gaps between them.
func (p *Pool) Bytes() []byte { return p.lmr.Bytes() }
