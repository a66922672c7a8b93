package loop

import (
	"godat/hw/internal/soft"
	"godat/internal/token"
	"godat/internal/yield"
)

var _ soft.Accessor = (*pipe)(nil)

// presence is a pipe's place in the sets of accessors of the zones of its two ends. Both
// may be one zone: then far is not used.
type presence struct{ near, far soft.Presence }

// InProgress implements [soft.Accessor]: it finds the accesses of the holder of the
// pipe's token, who writes the token's word before it looks a key up.
func (p *pipe) InProgress() (w uint64, busy bool) {
	w = p.token.Load()
	return w, w&token.Held != 0
}

// Over implements [soft.Accessor].
func (p *pipe) Over(w uint64) bool { return p.token.MovedOn(w) }

// initPresence makes the pipe an accessor of its zones, which is in the set of neither.
func (p *pipe) initPresence() {
	p.present = new(presence)
	p.present.near.Init(p.from.qp.Zone, p, &p.attention, srcAbsent)
	if p.to.qp.Zone != p.from.qp.Zone {
		p.present.far.Init(p.to.qp.Zone, p, &p.attention, dstAbsent)
	}
}

// enter enters the pipe in the sets of its zones in which it is not. The caller holds the
// token, and looks keys up after it.
func (p *pipe) enter() {
	a := p.attention.Load()
	if a&srcAbsent != 0 {
		p.present.near.Enter()
	}
	if a&dstAbsent != 0 {
		p.present.far.Enter()
	}
}

// leave takes the pipe out of the sets, because it touches no memory any more.
func (p *pipe) leave() {
	p.present.near.Leave()
	if p.to.qp.Zone != p.from.qp.Zone {
		p.present.far.Leave()
	}
}

// arrive enters the pipe in the sets of its zones if that is all that is to be looked at,
// and reports whether it was.
func (p *pipe) arrive() bool {
	if a := p.attention.Load(); a&absent == 0 || a&^absent != 0 {
		return false
	}
	p.enter()
	yield.Point()
	return p.attention.Load() == 0
}
