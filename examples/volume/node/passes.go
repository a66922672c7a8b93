package node

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/target"
)

// A host sends a write anew by another way when it has lost the first one, and then goes on. So a write that is still
// somewhere on the first way, at a node that stood still for a moment, must never come after those. Over a change of the
// leader the term sees to that; beside a leader that stays, passes do. What changes the disk comes to the log by one
// node at a time for each host: the one that has its pass. The leader gives the pass to the node that asks, and takes it from
// the one before with that; who has it then looks whether the host still has the connection by which a command came. A host
// ends a connection before it makes again what it sent by that, so what comes to the log was not given up when the pass
// was given, and nothing that was given up since has the pass.

// pass is the right of a node to bring the changes of a host to the log.
type pass struct {
	term, number uint64
}

// passes are those that this node has from the leader, which may be itself. Consensus owns them.
type passes struct {
	c *consensus
	// ask asks the leader for a host's pass. got runs in the goroutine of consensus.
	ask   func(host identity.ID, got func(pass, error))
	all   map[identity.ID]*holding
	ended bool
}

// holding is a host's pass, or the wait for it.
type holding struct {
	pass  pass                   // zero while it is asked for
	alive map[target.Origin]bool // connections that the host had since the pass was given; false is asked for
	waits []bearer
}

// bearer is a command that wants the pass.
type bearer struct {
	from target.Origin
	run  func(pass, error)
}

// mostPassages bounds the hosts, and the connections of one, that are known. What is forgotten is asked for again.
const mostPassages = 1024

// errGivenUp is why a command of a connection that has ended goes no further. Nobody hears of it.
var errGivenUp = errors.New("node: the connection of the command has ended")

func newPasses(c *consensus, ask func(identity.ID, func(pass, error))) *passes {
	return &passes{c: c, ask: ask, all: make(map[identity.ID]*holding)}
}

// admit runs a command when its host's pass is here, or fails it.
func (p *passes) admit(from target.Origin, run func(pass, error)) {
	if p.ended {
		run(pass{}, errChange)
		return
	}
	h := p.all[from.Host]
	if h != nil && h.alive[from] {
		run(h.pass, nil)
		return
	}
	if h != nil {
		h.waits = append(h.waits, bearer{from, run})
		if h.pass != (pass{}) {
			p.look(h, from)
		}
		return
	}
	for host, other := range p.all {
		if len(p.all) < mostPassages {
			break
		}
		if len(other.waits) == 0 {
			delete(p.all, host)
		}
	}
	h = &holding{alive: make(map[target.Origin]bool), waits: []bearer{{from, run}}}
	p.all[from.Host] = h
	p.ask(from.Host, func(x pass, err error) { p.got(from.Host, h, x, err) })
}

// got takes the answer of the leader.
func (p *passes) got(host identity.ID, h *holding, x pass, err error) {
	if p.all[host] != h || p.ended {
		return
	}
	if err != nil {
		delete(p.all, host)
		for _, b := range h.waits {
			b.run(pass{}, err)
		}
		return
	}
	h.pass = x
	for _, b := range h.waits {
		p.look(h, b.from)
	}
}

// look looks whether a host still has a connection.
func (p *passes) look(h *holding, from target.Origin) {
	if _, asked := h.alive[from]; asked {
		return
	}
	maps.DeleteFunc(h.alive, func(other target.Origin, _ bool) bool { return other.Ended() })
	if len(h.alive) >= mostPassages {
		clear(h.alive)
	}
	h.alive[from] = false
	p.c.tasks.Go(func() {
		alive := from.Alive(p.c.ctx)
		p.c.events.put(func() { p.looked(h, from, alive) })
	})
}

// looked lets the commands of a connection go.
func (p *passes) looked(h *holding, from target.Origin, alive bool) {
	if p.ended || p.all[from.Host] != h {
		return
	}
	err := errGivenUp
	if alive {
		h.alive[from], err = true, nil
	} else {
		delete(h.alive, from)
	}
	waits := h.waits
	h.waits = nil
	for _, b := range waits {
		if b.from == from {
			b.run(h.pass, err)
		} else {
			h.waits = append(h.waits, b)
		}
	}
}

// lose forgets a pass that another node has now. What waits asks for it again.
func (p *passes) lose(host identity.ID, x pass) {
	h := p.all[host]
	if h == nil || h.pass != x {
		return
	}
	delete(p.all, host)
	for _, b := range h.waits {
		p.admit(b.from, b.run)
	}
}

// end fails all that waits.
func (p *passes) end() {
	p.ended = true
	order := func(a, b identity.ID) int { return bytes.Compare(a[:], b[:]) }
	for _, host := range slices.SortedFunc(maps.Keys(p.all), order) { // a seeded world wants one order
		for _, b := range p.all[host].waits {
			b.run(pass{}, errChange)
		}
	}
	p.all = nil
}
