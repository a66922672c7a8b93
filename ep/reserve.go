package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// Own is an endpoint for the connection of package runtime that made it, which posts with cookies of its
// own. No program can get one.
type Own struct{ e *Endpoint }

// Own returns the endpoint for its connection.
func (e *Endpoint) Own(door.Key) Own { return Own{e} }

// Reserve keeps the cookies whose highest bit is set for the connection, which finds its
// buffers by them: every post of the program with such a cookie is INVALID_PARAMETER from
// then on. The connection calls Reserve before it posts.
func (o Own) Reserve() { o.e.box.Reserve() }

// NewOutbox is [NewOutbox] of one that calls dropped for each request of Next that Reset drops.
func (o Own) NewOutbox(n int, dropped func(cookie uint64)) *Outbox {
	b := NewOutbox(o.e, n)
	b.dropped = dropped
	return b
}

// Next is [Outbox.Next] for a request of whose success only a filter hears, with the flag
// Suppress. Of those that go out together Flush suppresses all but the last, behind whose
// completion the filter hears of all.
func (Own) Next(b *Outbox) (*DTO, error) {
	d, err := b.Next()
	if err == nil {
		d.Flags, d.OneShot = hw.Suppress, line.OwnShot
		b.last = len(b.dtos)
	}
	return d, err
}

// PostSend is [Endpoint.PostSend] with a reserved cookie, and without flags.
func (o Own) PostSend(cookie uint64, segment mem.Segment) error {
	segments := [1]mem.Segment{segment}
	return line.PostPlain(o.e.mailbox(), hw.OpSend, cookie, hw.Default, segments[:], &line.OwnSend, nil)
}

// PostPieces posts a receive for each cookie, into pieces of memory that have one size
// and lie one beside the other in a region, as a pool's buffers do: first is piece 0, step the
// distance from one piece to the next, and the low 32 bits of a cookie are the number of its
// piece. It returns false, and nothing has happened, if something else than a plain post is to be
// done, or if there are no cookies or more than 64; then the caller uses PostRecvs.
func (o Own) PostPieces(first mem.Segment, step uint64, cookies []uint64) bool {
	return o.e.box.PostPieces(first, step, cookies)
}

// FreeWindows frees the windows of a closed endpoint in its zone, or all windows of the zone.
func (o Own) FreeWindows(pz *mem.PZ, all bool) error {
	if all {
		return pz.FreeWindows(door.Key{}, nil)
	}
	return pz.FreeWindows(door.Key{}, &o.e.windows)
}

// PostRecvs is [Endpoint.PostRecvBatch] with reserved cookies.
func (o Own) PostRecvs(dtos []DTO) (n int, err error) {
	for i := range dtos {
		dtos[i].OneShot = line.OwnShot
	}
	return postAll(o.e, hw.OpRecv, dtos)
}
