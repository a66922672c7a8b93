package model

// Flags of an [Event], continued.
const (
	Invalidated = 1 << 2 // Imm is the context that the send invalidated

	recvInvalidate = 4 // in the event of such a receive
)

// invalidate ends the access of p's peer by a context. It reports whether the
// context is one of a window of p, or of a window or a region of p's zone.
func (w *World) invalidate(p *endpoint, s Segment) (context int, ok bool) {
	if s.Window {
		if s.Region >= len(w.names) || w.names[s.Region] == nil {
			return 0, false
		}
		b := w.names[s.Region]
		m := b.window
		if !m.open || m.bound != b || !m.within(p) {
			return 0, false
		}
		m.bound, m.lost = nil, true
		return b.context, true
	}
	m := w.at(s)
	if m == nil || !m.open || m.zone != p.zone || m.remote()&remotePrivilege == 0 {
		return 0, false
	}
	m.closed = true
	return m.context, true
}

// within reports whether the peer of p may use the window.
func (m *window) within(p *endpoint) bool {
	if m.ep != nil {
		return m.ep == p
	}
	return m.zone == p.zone
}

// remote returns the privileges of a region for peers that use the region's own
// context.
func (m *region) remote() int {
	if m.closed {
		return m.priv &^ remotePrivilege
	}
	return m.priv
}

// readToRMR executes a read whose sink is named by a remote context.
func (w *World) readToRMR(p *endpoint, x *work) {
	sink, source := x.sink, x.remote
	sink.Len = source.Len
	switch {
	case p.readsOut == 0 || p.peer.readsIn == 0:
		w.failSomehow(p)
	case !w.reachable(&sink, p, remoteWrite):
		w.fail(p, errLocalProtection)
	case !w.reachable(&source, p.peer, remoteRead):
		w.blur([]Segment{sink})
		w.fail(p, errRemoteAccess)
	default:
		w.move([]Segment{sink}, []Segment{source}, source.Len)
		w.requested(p, 0, source.Len, false)
	}
}
