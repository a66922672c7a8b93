package loop

import (
	"sync"

	"godat/hw"
)

// fabric knows the devices of the process by name.
var fabric = struct {
	sync.Mutex
	nodes map[string]*node
}{nodes: make(map[string]*node)}

// firstQual is the first of the qualifiers that loop itself picks. They are the dynamic
// ports, up to hw.MaxQual, which programs do not choose by habit.
const firstQual = 49152

// node is the state that the devices open under one name share. The fabric's lock
// guards all but the name.
type node struct {
	name      string
	devices   int
	lastQual  uint64
	listeners map[uint64]*listener
}

// attach finds or makes the node of a name, for one more device.
func attach(name string) *node {
	fabric.Lock()
	defer fabric.Unlock()
	n := fabric.nodes[name]
	if n == nil {
		n = &node{name: name, lastQual: firstQual - 1, listeners: make(map[uint64]*listener)}
		fabric.nodes[name] = n
	}
	n.devices++
	return n
}

// detach counts one device less, and drops the node with the last one.
func (n *node) detach() {
	fabric.Lock()
	defer fabric.Unlock()
	if n.devices--; n.devices == 0 {
		delete(fabric.nodes, n.name)
	}
}

// find looks up the listener of a qualifier, nil if there is none. known is false if no
// device of that name is open.
func find(name string, qual uint64) (ln *listener, known bool) {
	if name == "" {
		name = Name
	}
	fabric.Lock()
	defer fabric.Unlock()
	n := fabric.nodes[name]
	if n == nil {
		return nil, false
	}
	return n.listeners[qual], true
}

// listen enters a listener under its qualifier, or one that it picks.
func (n *node) listen(ln *listener) error {
	fabric.Lock()
	defer fabric.Unlock()
	if ln.qual == 0 && len(n.listeners) > hw.MaxQual-firstQual {
		return hw.Errorf("loop.Listen", hw.ConnQualUnavailable, hw.NoSubtype, "%d listeners have the qualifiers that loop chooses from", len(n.listeners))
	}
	if ln.qual == 0 {
		ln.qual = n.pick()
	}
	if n.listeners[ln.qual] != nil {
		return hw.Errorf("loop.Listen", hw.ConnQualInUse, hw.NoSubtype, "somebody listens at %s already: port 0 is any free one", ln.Addr())
	}
	n.listeners[ln.qual] = ln
	return nil
}

// unlisten removes a listener and reports whether it was still there.
func (n *node) unlisten(ln *listener) bool {
	fabric.Lock()
	defer fabric.Unlock()
	if n.listeners[ln.qual] != ln {
		return false
	}
	delete(n.listeners, ln.qual)
	return true
}

// ephemeral picks a qualifier for the initiating end of a connection. It returns the
// same one again only after all others of the range.
func (n *node) ephemeral() uint64 {
	fabric.Lock()
	defer fabric.Unlock()
	return n.next()
}

// pick picks a qualifier without a listener, of which there is one. The lock is held.
func (n *node) pick() uint64 {
	for {
		if qual := n.next(); n.listeners[qual] == nil {
			return qual
		}
	}
}

// next returns the qualifiers from firstQual to hw.MaxQual in turn. The lock is held.
func (n *node) next() uint64 {
	if n.lastQual++; n.lastQual > hw.MaxQual {
		n.lastQual = firstQual
	}
	return n.lastQual
}
