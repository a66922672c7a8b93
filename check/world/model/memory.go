package model

import (
	"fmt"
	"slices"
)

// Privileges are the memory privileges by name, from dat.h and the InfiniBand
// extension.
var Privileges = map[string]int{
	"LOCAL_READ": 0x01, "REMOTE_READ": 0x02, "LOCAL_WRITE": 0x10, "REMOTE_WRITE": 0x20, "REMOTE_ATOMIC": 0x40,
}

const (
	localRead       = 0x01
	remoteRead      = 0x02
	localWrite      = 0x10
	remoteWrite     = 0x20
	remoteAtomic    = 0x40
	remotePrivilege = remoteRead | remoteWrite | remoteAtomic
)

// memory is the memory of a program: zones, regions (LMRs), windows (RMRs) and what
// they contain.
type memory struct {
	zones   objects[*zone]
	regions objects[*region]
	windows objects[*window]
	binds   []*binding // by bind; nil for an unbind, and for a bind that was refused
}

type zone struct{ handle }

func (m *memory) newZone(c *call) { m.zones.add(c, &zone{handle{c.On, true}}) }

func (w *World) freeZone(z *zone, c *call) {
	users := w.memory.regions.count(func(r *region) bool { return r.zone == z }) + w.memory.windows.count(func(m *window) bool { return m.zone == z }) +
		w.eps.count(func(p *endpoint) bool { return p.zone == z }) + w.srqs.count(func(q *srq) bool { return q.zone == z })
	z.free(c, users > 0, invalidState|subPZInUse)
}

// region is an LMR, and the bytes that its memory should hold.
type region struct {
	handle
	zone        *zone
	priv        int
	context     int  // the remote context
	invalidated bool // a peer has invalidated the context
	root        int  // the number of the first region of this memory
	cells       []cell
}

// cell is a byte of memory, and whether it may be anything, since a failed transfer
// may have begun.
type cell struct {
	byte    byte
	unknown bool
}

// Fill returns byte i of a new region.
func Fill(region, i int) byte { return byte(region*31 + i*7 + 1) }

// newRegion judges a registration of new memory or, with lmr_of, of the memory of
// another region.
func (m *memory) newRegion(c *call) {
	r := &region{
		handle: handle{c.On, true}, zone: m.zones.named(c.Text("pz")), priv: c.Bits("priv", Privileges),
		context: c.Values["context"], root: len(m.regions.all),
	}
	need(c, r.zone)
	if c.Op == "lmr_of" {
		if of := m.regions.named(c.Text("of")); need(c, of) {
			r.root, r.cells = of.root, of.cells
		}
	} else {
		n := c.Int("size")
		c.refuse(n == 0, lengthError)
		r.cells = make([]cell, n)
		for i := range r.cells {
			r.cells[i].byte = Fill(r.root, i)
		}
	}
	m.regions.add(c, r)
}

func (m *memory) freeRegion(r *region, c *call) {
	bound := m.windows.count(func(w *window) bool { return w.bound != nil && m.at(w.bound.seg) == r })
	r.free(c, bound > 0, invalidState|subLMRInUse)
}

func (r *region) query(c *call) {
	c.expect("length", len(r.cells), "privileges", r.priv, "covered", 1, "remote", number(r.priv&remotePrivilege != 0))
}

// sync judges a synchronization of memory; of its effect only the refusals are
// visible.
func (m *memory) sync(c *call) {
	for _, s := range c.Segments("local") {
		if s.Len == 0 {
			continue
		}
		if r := m.at(s); need(c, r) {
			c.refuse(!r.holds(s), invalidParameter)
		}
	}
}

// holds reports whether a segment is within the region.
func (r *region) holds(s Segment) bool { return s.Off >= 0 && s.Off+s.Len <= len(r.cells) }

// remote returns the privileges of a region for peers that use the region's own
// context.
func (r *region) remote() int {
	if r.invalidated {
		return r.priv &^ remotePrivilege
	}
	return r.priv
}

// at returns the region of a segment; nil for one that was never made.
func (m *memory) at(s Segment) *region {
	if s.Window {
		return nil
	}
	return m.regions.at(s.Region)
}

// refuseSegments adds what a post is refused for because of its segments, and
// returns their total length.
func (m *memory) refuseSegments(c *call, segs []Segment, z *zone, privilege int) int {
	for _, s := range head(segs, total(segs)) {
		r := m.at(s)
		if need(c, r); !there(r) {
			continue
		}
		c.refuse(r.zone != z, protectionViolation)
		c.refuse(!r.holds(s), protectionViolation)
		c.refuse(r.priv&privilege == 0, privilegesViolation)
	}
	return total(segs)
}

// reachable reports whether the peer of p may access s. It replaces a piece of a
// window by the piece of the region to which the window is bound.
func (m *memory) reachable(s *Segment, p *endpoint, privilege int) bool {
	if s.Len == 0 {
		s.Window = false
		return true
	}
	if s.Window {
		b := m.bind(*s)
		real, ok := b.resolve(*s, privilege)
		*s = real
		return ok && b.window.belongs(p)
	}
	r := m.at(*s)
	return there(r) && r.zone == p.zone && r.remote()&privilege != 0 && r.holds(*s)
}

// intact reports whether no region in the first n bytes of segs was freed.
func (m *memory) intact(segs []Segment, n int) bool {
	return !slices.ContainsFunc(head(segs, n), func(s Segment) bool { return !m.at(s).open })
}

// inZone reports whether the first n bytes of segs are in zone z. The post checked
// that with the endpoint's zone of its time; the endpoint may have another zone
// since.
func (m *memory) inZone(segs []Segment, n int, z *zone) bool {
	return !slices.ContainsFunc(head(segs, n), func(s Segment) bool { return m.at(s).zone != z })
}

// head returns the first n bytes of segs, without empty segments.
func head(segs []Segment, n int) (first []Segment) {
	for _, s := range segs {
		s.Len = min(s.Len, n)
		n -= s.Len
		if s.Len > 0 {
			first = append(first, s)
		}
	}
	return first
}

func total(segs []Segment) (n int) {
	for _, s := range segs {
		n += s.Len
	}
	return n
}

// move copies n bytes. If source and sink, or two segments of the sink, overlap,
// the bytes of the sink become unknown.
func (m *memory) move(to, from []Segment, n int) {
	to, from = head(to, n), head(from, n)
	mixed := false
	for i, d := range to {
		mixed = mixed || m.overlap(d, from...) || m.overlap(d, to[:i]...)
	}
	m.store(to, mixed, m.load(from))
}

// load returns what segments hold.
func (m *memory) load(segs []Segment) (cells []cell) {
	for _, s := range segs {
		cells = append(cells, m.at(s).cells[s.Off:s.Off+s.Len]...)
	}
	return cells
}

// store writes cells to segments that are as long. If they are mixed up, all become
// unknown.
func (m *memory) store(segs []Segment, mixed bool, cells []cell) {
	for _, s := range segs {
		cells = cells[copy(m.at(s).cells[s.Off:s.Off+s.Len], cells):]
	}
	if mixed {
		m.forget(segs)
	}
}

// overlap reports whether a segment has a byte of memory in common with one of the
// others.
func (m *memory) overlap(s Segment, others ...Segment) bool {
	return slices.ContainsFunc(others, func(o Segment) bool {
		return m.at(s).root == m.at(o).root && s.Off < o.Off+o.Len && o.Off < s.Off+s.Len
	})
}

// forget marks memory as unknown that a failed transfer may have begun to fill.
func (m *memory) forget(segs []Segment) {
	for _, s := range segs {
		if r := m.at(s); r != nil {
			for i := max(0, s.Off); i < min(len(r.cells), s.Off+s.Len); i++ {
				r.cells[i].unknown = true
			}
		}
	}
}

// CheckMemory compares the memory of an open region with the bytes that it should
// hold.
func (w *World) CheckMemory(index int, got []byte) error {
	for i, c := range w.memory.regions.at(index).cells {
		if !c.unknown && got[i] != c.byte {
			return fmt.Errorf("byte %d of m%d is %#x, should be %#x", i, index, got[i], c.byte)
		}
	}
	return nil
}
