package ep

import (
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// Reserve keeps the cookies whose highest bit is set for a connection of package runtime,
// which finds its buffers by them: every post of the program with such a cookie is
// INVALID_PARAMETER from then on. The connection alone calls Reserve, before it posts, and
// posts by the other calls of this file.
func (e *Endpoint) Reserve(door.Key) { e.box.reserves = true }

// ownSend stands for the remote memory of a connection's own sends, which have none: so the
// short way of a post tells them from the program's.
var ownSend mem.RemoteSegment

// PostOwnSend is PostSend with a reserved cookie, and without flags.
func (e *Endpoint) PostOwnSend(_ door.Key, cookie uint64, segment mem.Segment) error {
	segments := [1]mem.Segment{segment}
	return e.postPlain(hw.OpSend, cookie, hw.Default, segments[:], &ownSend, nil)
}

// PostOwnRecvs is PostRecvBatch with reserved cookies.
func (e *Endpoint) PostOwnRecvs(_ door.Key, dtos []DTO) (n int, err error) {
	for n < len(dtos) && err == nil {
		var took int
		took, err = e.box.postSome(&e.box.recvs, dtos[n:min(len(dtos), n+batchDTOs)])
		n += took
	}
	return n, err
}

// refuses reports whether the program may not post with that cookie.
func (e *Endpoint) refuses(cookie uint64) bool { return cookie>>63 != 0 && e != nil && e.box.reserves }

func reservedCookie(call string, cookie uint64) error {
	return hw.Errorf(call, hw.InvalidParameter, hw.NoSubtype,
		"cookie %#x: those whose highest bit is set are the connection's own", cookie)
}
