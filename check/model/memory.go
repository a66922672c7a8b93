package model

import "fmt"

// Privileges are the memory privileges by name, from dat.h and the InfiniBand
// extension.
var Privileges = map[string]int{
	"LOCAL_READ": 0x01, "REMOTE_READ": 0x02, "LOCAL_WRITE": 0x10, "REMOTE_WRITE": 0x20, "REMOTE_ATOMIC": 0x40,
}

const (
	localRead    = 0x01
	remoteRead   = 0x02
	localWrite   = 0x10
	remoteWrite  = 0x20
	remoteAtomic = 0x40
)

type zone struct {
	open bool
	uses int // how many endpoints and regions use it
}

// region is an LMR, and the bytes that its memory should hold.
type region struct {
	zone    *zone
	open    bool
	priv    int
	context int  // the remote context
	closed  bool // a peer has invalidated the context
	root    int  // the number of the first region of this memory
	bytes   []byte
	vague   []bool // which bytes may be anything, since a failed transfer may have begun
}

// Fill returns byte i of a new region.
func Fill(region, i int) byte { return byte(region*31 + i*7 + 1) }

func (w *World) zone(name string) *zone     { return object(w.zones, 'z', name) }
func (w *World) region(name string) *region { return object(w.regions, 'm', name) }

func (w *World) newZone(_ Command, r Result) error {
	w.zones = append(w.zones, &zone{open: true})
	_, err := new(verdict).judge(r.Code)
	return err
}

func (w *World) freeZone(c Command, r Result) error {
	z := w.zone(c.On)
	var v verdict
	v.when(z == nil, invalidHandle)
	v.when(z != nil && z.open && z.uses > 0, invalidState|subPZInUse)
	ok, err := v.judge(r.Code)
	if ok {
		z.open = false
	}
	return err
}

func (w *World) newRegion(c Command, r Result) error {
	m := &region{zone: w.zone(c.Text("pz")), priv: c.Bits("priv", Privileges)}
	w.regions = append(w.regions, nil)
	n := c.Int("size")
	var v verdict
	v.when(m.zone == nil || !m.zone.open, invalidHandle)
	v.when(n == 0, lengthError)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	m.open = true
	m.root, m.context = len(w.regions)-1, r.Values["context"]
	w.regions[m.root] = m
	m.zone.uses++
	m.bytes, m.vague = make([]byte, n), make([]bool, n)
	for i := range m.bytes {
		m.bytes[i] = Fill(len(w.regions)-1, i)
	}
	return err
}

// newRegionOf judges a registration of the memory of another region.
func (w *World) newRegionOf(c Command, r Result) error {
	m, o := &region{zone: w.zone(c.Text("pz")), priv: c.Bits("priv", Privileges)}, w.region(c.Text("of"))
	w.regions = append(w.regions, nil)
	var v verdict
	v.when(m.zone == nil || !m.zone.open, invalidHandle)
	v.when(o == nil || !o.open, invalidHandle)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	m.open, m.context = true, r.Values["context"]
	m.root, m.bytes, m.vague = o.root, o.bytes, o.vague
	w.regions[len(w.regions)-1] = m
	m.zone.uses++
	return nil
}

// sync judges a synchronization of memory; of its effect only the refusals are
// visible.
func (w *World) sync(c Command, r Result) error {
	var v verdict
	for _, s := range c.Segments("local") {
		m := w.at(s)
		if s.Len == 0 {
			continue
		}
		v.when(m == nil || !m.open, invalidHandle)
		v.when(m != nil && (s.Off < 0 || s.Off+s.Len > len(m.bytes)), invalidParameter)
	}
	_, err := v.judge(r.Code)
	return err
}

func (w *World) freeRegion(c Command, r Result) error {
	m := w.region(c.On)
	var v verdict
	v.when(m == nil, invalidHandle)
	v.when(m != nil && m.open && w.bindings(Index('m', c.On)) > 0, invalidState|subLMRInUse)
	ok, err := v.judge(r.Code)
	if ok && m.open {
		m.open = false
		m.zone.uses--
	}
	return err
}

func (w *World) queryRegion(c Command, r Result) error {
	m := w.region(c.On)
	var v verdict
	v.when(m == nil || !m.open, invalidHandle)
	v.when(c.Text("mask") == "bad", invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	return r.check("length", len(m.bytes), "privileges", m.priv, "covered", 1,
		"remote", number(m.priv&(remoteRead|remoteWrite|remoteAtomic) != 0))
}

// at returns the region of a segment; nil for one that was never made.
func (w *World) at(s Segment) *region {
	if s.Window || s.Region < 0 || s.Region >= len(w.regions) {
		return nil
	}
	return w.regions[s.Region]
}

// checkSegments adds what a post is refused for because of its segments, and
// returns their total length.
func (w *World) checkSegments(v *verdict, segs []Segment, z *zone, need int) (total int) {
	for _, s := range segs {
		total += s.Len
		if s.Len == 0 {
			continue
		}
		m := w.at(s)
		if m == nil || !m.open {
			v.when(true, invalidHandle)
			continue
		}
		v.when(m.zone != z, protectionViolation)
		v.when(s.Off < 0 || s.Off+s.Len > len(m.bytes), protectionViolation)
		v.when(m.priv&need == 0, privilegesViolation)
	}
	return total
}

// reachable reports whether the peer of p may access s. It replaces a piece of a
// window by the piece of the region to which the window is bound.
func (w *World) reachable(s *Segment, p *endpoint, need int) bool {
	if s.Len == 0 {
		s.Window = false
		return true
	}
	if s.Window {
		real, ok := w.through(*s, need)
		ok = ok && w.names[s.Region].window.within(p)
		*s = real
		return ok
	}
	m := w.at(*s)
	return m != nil && m.open && m.zone == p.zone && m.remote()&need != 0 && s.Off >= 0 && s.Off+s.Len <= len(m.bytes)
}

// alive reports whether no region in the first n bytes of segs was freed.
func (w *World) alive(segs []Segment, n int) bool {
	for _, s := range head(segs, n) {
		if !w.regions[s.Region].open {
			return false
		}
	}
	return true
}

// inZone reports whether the first n bytes of segs are in zone z. The post checked
// that with the endpoint's zone of its time; the endpoint may have another zone
// since.
func (w *World) inZone(segs []Segment, n int, z *zone) bool {
	for _, s := range head(segs, n) {
		if w.regions[s.Region].zone != z {
			return false
		}
	}
	return true
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

// place is one byte of a region.
type place struct {
	m *region
	i int
}

func (w *World) places(segs []Segment) (all []place) {
	for _, s := range segs {
		for i := range s.Len {
			all = append(all, place{w.regions[s.Region], s.Off + i})
		}
	}
	return all
}

// move copies n bytes. If source and sink, or two segments of the sink, overlap,
// the bytes of the sink become unknown.
func (w *World) move(to, from []Segment, n int) {
	to, from = head(to, n), head(from, n)
	mixed := false
	for i, d := range to {
		for _, s := range from {
			mixed = mixed || w.overlap(d, s)
		}
		for _, s := range to[:i] {
			mixed = mixed || w.overlap(d, s)
		}
	}
	dst, src := w.places(to), w.places(from)
	for i, p := range dst {
		p.m.bytes[p.i] = src[i].m.bytes[src[i].i]
		p.m.vague[p.i] = mixed || src[i].m.vague[src[i].i]
	}
}

// overlap reports whether two segments have a byte of memory in common.
func (w *World) overlap(s, o Segment) bool {
	return w.regions[s.Region].root == w.regions[o.Region].root && s.Off < o.Off+o.Len && o.Off < s.Off+s.Len
}

// blur marks as unknown memory that a failed transfer may have begun to fill.
func (w *World) blur(segs []Segment) {
	for _, s := range segs {
		m := w.at(s)
		if m == nil {
			continue
		}
		for i := max(0, s.Off); i < min(len(m.vague), s.Off+s.Len); i++ {
			m.vague[i] = true
		}
	}
}

// CheckMemory compares the memory of an open region with the bytes that it should
// hold.
func (w *World) CheckMemory(index int, got []byte) error {
	m := w.regions[index]
	for i := range m.bytes {
		if !m.vague[i] && got[i] != m.bytes[i] {
			return fmt.Errorf("byte %d of m%d is %#x, should be %#x", i, index, got[i], m.bytes[i])
		}
	}
	return nil
}
