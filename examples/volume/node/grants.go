package node

import (
	"godat/examples/nvmeof/identity"
)

// grants is which node has which host's pass, as the leader gives it.
type grants struct {
	term   uint64
	number uint64
	ticks  int
	given  map[identity.ID]grant
	lost   func(identity.ID, pass) // hears of a pass that is void
	claims []claim                 // that wait until the node that has the pass has had it for a moment
}

type grant struct {
	to    uint64
	pass  pass
	since int // tick
}

type claim struct {
	host identity.ID
	by   uint64
	got  func(pass, error)
}

// tenure is for how many ticks a node keeps a pass that another one wants: a host that uses both ways at a time gets on.
const tenure = 2

// claim gives a pass to a node, now or soon.
func (g *grants) claim(x claim) {
	is, given := g.given[x.host]
	if given && is.to != x.by && g.ticks-is.since < tenure {
		g.claims = append(g.claims, x)
		return
	}
	for host, other := range g.given {
		if len(g.given) < mostPassages {
			break
		}
		delete(g.given, host)
		g.lost(host, other.pass)
	}
	g.number++
	now := pass{g.term, g.number}
	g.given[x.host] = grant{x.by, now, g.ticks}
	if given {
		g.lost(x.host, is.pass)
	}
	x.got(now, nil)
}

// valid reports whether a node has a host's pass.
func (g *grants) valid(host identity.ID, by uint64, x pass) bool {
	is, given := g.given[host]
	return given && is.to == by && is.pass == x
}

// tick lets time pass.
func (g *grants) tick() {
	g.ticks++
	claims := g.claims
	g.claims = nil
	for _, x := range claims {
		g.claim(x)
	}
}

// end refuses all claims.
func (g *grants) end() {
	for _, x := range g.claims {
		x.got(pass{}, errChange)
	}
	g.claims = nil
}

// beginPasses begins to give passes. This node has those of hosts that use it from itself.
func (r *reign) beginPasses() {
	own := r.c.cfg.ID
	r.passes = newPasses(r.c, func(host identity.ID, got func(pass, error)) { r.grants.claim(claim{host, own, got}) })
	r.grants = grants{term: r.term, given: make(map[identity.ID]grant), lost: r.passes.lose}
}
