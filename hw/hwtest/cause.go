package hwtest

import (
	"errors"
	"slices"

	"godat/hw"
)

// Every end of a connection, and of an attempt to connect, has a cause on both sides. The
// causes' texts differ between transports.

// brokenBecause checks that a connection broke, and that both ends got a cause. A cause that
// holds a completion status must hold one of may.
func (r *rig) brokenBecause(a, b *end, may ...hw.Status) {
	r.broken(a, b)
	for _, c := range r.causes(a, b) {
		var status hw.StatusError
		if errors.As(c, &status) {
			r.also.Contains(may, hw.Status(status), "%v", c)
		}
	}
}

// foundHere checks that e's own side found what broke the connection. On a polled device
// the news that the peer has disconnected may overtake the poll that brings the failed
// completion; the cause then has no status, and tells of the peer.
func (r *rig) foundHere(e *end) {
	var status hw.StatusError
	if e.host.polled != nil && !errors.As(e.cause, &status) {
		return
	}
	r.also.Equal(hw.SideLocal, e.cause.Found, "%v", e.cause)
}

// named checks that the cause of an end one of whose operations found its memory gone names
// that status. On a polled device the news that the peer has disconnected may come first.
func (r *rig) named(e *end, all []hw.Status) {
	if e.host.polled == nil && slices.Contains(all, hw.StatusLocalProtection) {
		r.also.ErrorIs(e.cause, hw.StatusLocalProtection.Err(), "%v", e.cause)
	}
}

// badCause reports whether a cause says too little: it must have a text or an error, and
// a known layer and side.
func badCause(c *hw.Cause) bool {
	return c == nil || c.Text == "" && c.Err == nil || c.Layer > hw.LayerVerbs || c.Found > hw.SidePeer
}

// causes lists the ends' causes; each must have one.
func (r *rig) causes(ends ...*end) (all []*hw.Cause) {
	for _, e := range ends {
		e.mu.Lock()
		c := e.cause
		e.mu.Unlock()
		r.must.NotNil(c, e.name())
		all = append(all, c)
	}
	return all
}
