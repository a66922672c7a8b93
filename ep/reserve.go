package ep

import (
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
func (o own) Reserve() { o.e.box.reserves = true }

// ownSend stands for the remote memory of a connection's own sends and receives, which have none:
// by it the short way of a post tells them from the program's.
var ownSend mem.RemoteSegment

// PostSend is [Endpoint.PostSend] with a reserved cookie, and without flags.
func (o own) PostSend(cookie uint64, segment mem.Segment) error {
	segments := [1]mem.Segment{segment}
	return postPlain(o.e.mailbox(), hw.OpSend, cookie, hw.Default, segments[:], &ownSend, nil)
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
		dtos[i].own = true
	}
	return postAll(o.e, hw.OpRecv, dtos)
}

// Watcher returns where the messages of the connection come in, so that a stream can wait
// there; nil if the provider has no such place.
func (o own) Watcher() hw.Watcher {
	o.e.ctl.Lock()
	defer o.e.ctl.Unlock()
	if w, ok := o.e.box.qp.(hw.Watchable); ok {
		return w.Watcher()
	}
	return nil
}

// check is [rules.check] in the present state. It refuses the connection's cookies to the program.
func (b *mailbox) check(r *rules, w *work) (lkey uint32, err error) {
	if w.cookie>>63 != 0 && b.reserves && !w.own {
		return 0, hw.Errorf(callOf(w.op), hw.InvalidParameter, hw.NoSubtype,
			"cookie %#x: those whose highest bit is set are the connection's own", w.cookie)
	}
	return r.check(w, b.State())
}
