package ep

import "godat/hw"

// Flow is what the endpoint's transport says of its connection: how many octets have come from the peer,
// and how many of this end's the peer's system has acknowledged or not, of whatever the connection carries. So
// a program that waits for a peer can tell one that does nothing from one behind a slow link, and one that sends
// can tell what waits in its system. Flow asks the
// system, which takes some microseconds. ok is false if the endpoint is not connected, or the transport
// does not tell: iwarp tells over TCP on Linux and macOS, loop and verbs devices do not. Any goroutine may
// call it. DAT has no such call; TCP's is TCP_INFO.
func (e *Endpoint) Flow() (f hw.Flow, ok bool) {
	if alive("ep.Flow", e) != nil {
		return hw.Flow{}, false
	}
	e.ctl.reach.Lock()
	defer e.ctl.reach.Unlock()
	if q, tells := e.ctl.queuePair().(hw.Flowing); tells && e.State() == Connected {
		return q.Flow()
	}
	return hw.Flow{}, false
}
