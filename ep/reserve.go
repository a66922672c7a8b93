package ep

import (
	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// own is an endpoint for the connections of package runtime, which post with cookies of their
// own. A program can't get it.
type own struct{ e *Endpoint }

// Own returns the endpoint for its connection.
func (e *Endpoint) Own(door.Key) own { return own{e} } //nolint:revive // a program has no use for the name of its type

// Reserve keeps the cookies whose highest bit is set for the connection, which finds its
// buffers by them: every post of the program with such a cookie is INVALID_PARAMETER from
// then on. The connection calls Reserve before it posts.
func (o own) Reserve() { o.e.box.Reserve() }

// PostSend is [Endpoint.PostSend] with a reserved cookie, and without flags.
func (o own) PostSend(cookie uint64, segment mem.Segment) error {
	segments := [1]mem.Segment{segment}
	return line.PostPlain(o.e.mailbox(), hw.OpSend, cookie, hw.Default, segments[:], &line.OwnSend, nil)
}

// PostPieces posts a receive for each cookie, into pieces of memory that have one size
// and lie one beside the other in a region, as a pool's buffers do: first is piece 0, step the
// distance from one piece to the next, and the low 32 bits of a cookie are the number of its
// piece. It returns false, and nothing has happened, if something else than a plain post is to be
// done, or if there are no cookies or more than 64; then the caller uses PostRecvs.
func (o own) PostPieces(first mem.Segment, step uint64, cookies []uint64) bool {
	return o.e.box.PostPieces(first, step, cookies)
}

// FreeWindows frees the windows of a closed endpoint in its zone, or all windows of the zone.
func (o own) FreeWindows(pz *mem.PZ, all bool) error {
	if all {
		return pz.FreeWindows(door.Key{}, nil)
	}
	return pz.FreeWindows(door.Key{}, &o.e.windows)
}

// PostRecvs is [Endpoint.PostRecvBatch] with reserved cookies.
func (o own) PostRecvs(dtos []DTO) (n int, err error) {
	for i := range dtos {
		dtos[i].OneShot = line.OwnShot
	}
	return postAll(o.e, hw.OpRecv, dtos)
}
