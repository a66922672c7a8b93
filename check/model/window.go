package model

import "fmt"

// window is an RMR.
type window struct {
	name    string
	open    bool
	zone    *zone
	bound   *binding  // what it is bound to; nil for nothing
	ep      *endpoint // the only one that may bind it, if set
	lost    bool      // a peer has invalidated what it was bound to
	posted  int       // binds that have not completed
	pending *binding  // of one that gives a context
}

// binding is what a bind gives a name to: a part of a region, as peers see it.
type binding struct {
	window *window
	seg    Segment
	priv   int

	context int  // by which peers name it
	was     bool // it came about
}

const (
	bindCompletion  = 0x01001
	errBindFailed   = 11
	subEVDRequest   = 60
	subLMRInUse     = 81
	streamRMR       = 0x080
	remotePrivilege = remoteRead | remoteWrite | remoteAtomic
)

func (w *World) window(name string) *window { return object(w.windows, 'w', name) }

func (w *World) newWindow(c Command, r Result) error {
	z := w.zone(c.Text("pz"))
	w.windows = append(w.windows, nil)
	p := w.ep(c.Text("ep"))
	var v verdict
	if c.Has("ep") {
		v = p.usable()
		if p != nil {
			z = p.zone
		}
		v.when(p != nil && z == nil, invalidState|subPZ)
	} else {
		v.when(z == nil || !z.open, invalidHandle)
	}
	ok, err := v.judge(r.Code)
	if ok {
		z.uses++
		w.windows[len(w.windows)-1] = &window{name: c.On, open: true, zone: z, ep: p}
	}
	return err
}

func (w *World) freeWindow(c Command, r Result) error {
	m := w.window(c.On)
	var v verdict
	v.when(m == nil, invalidHandle)
	v.when(m != nil && m.open && m.posted > 0, invalidState)
	ok, err := v.judge(r.Code)
	if ok && m.open {
		m.open, m.bound = false, nil
		m.zone.uses--
	}
	return err
}

func (w *World) queryWindow(c Command, r Result) error {
	m := w.window(c.On)
	var v verdict
	v.when(m == nil || !m.open, invalidHandle)
	v.when(c.Text("mask") == "bad", invalidParameter)
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	b := m.bound
	if b == nil {
		b = &binding{}
	}
	if m.lost && m.posted > 0 {
		return nil // what holds for a peer, or what the program has asked for
	}
	return r.check("ep scope", number(m.ep != nil), "length", b.seg.Len, "privileges", b.priv, "context", number(m.bound != nil))
}

// bindings count the windows that are bound to a region.
func (w *World) bindings(region int) (n int) {
	for _, m := range w.windows {
		if m != nil && m.bound != nil && m.bound.seg.Region == region {
			n++
		}
	}
	return n
}

// bind posts a bind, whose name is good for peers when it has completed. Without
// a segment it unbinds.
func (w *World) bind(c Command, r Result) error {
	p, m := w.ep(c.On), w.window(c.Text("rmr"))
	x := workOf(c)
	b := &binding{window: m, priv: c.Bits("priv", Privileges)}
	w.names = append(w.names, nil)
	v := p.usable()
	v.when(m == nil || !m.open, invalidHandle)
	if p != nil {
		v.when(m != nil && (m.zone != p.zone || m.ep != nil && m.ep != p), protectionViolation)
		w.refusals(&v, p, &work{op: "bind", flags: x.flags}, p.reqIOV, p.reqFlags)
		w.refuseRequest(&v, p)
		v.when(p.request != nil && p.request.takes&streamRMR == 0, invalidState|subEVDRequest)
		if len(x.segs) > 0 {
			b.seg = x.segs[0]
		}
		if b.seg.Len > 0 && b.priv != 0 {
			w.refuseBinding(&v, p, b)
		}
	}
	ok, err := v.judge(r.Code)
	if !ok {
		return err
	}
	m.posted++
	x.bind = b
	x.segs = nil
	if b.seg.Len > 0 && b.priv != 0 {
		m.pending = b
		b.context = r.Values["context"]
		if err := w.name(b); err != nil {
			return err
		}
	}
	w.posted(p, x)
	return nil
}

// name notes what peers may call a binding: by a context that no binding of the
// window had before, unless that one came to nothing.
func (w *World) name(b *binding) error {
	for i, o := range w.names {
		if o == nil || o.window != b.window || o.context != b.context {
			continue
		}
		if o.was {
			return fmt.Errorf("the context is that of b%d, which it replaces", i)
		}
		w.names[i] = b
	}
	w.names[len(w.names)-1] = b
	return nil
}

func (w *World) refuseBinding(v *verdict, p *endpoint, b *binding) {
	v.when(b.priv&remotePrivilege == 0, invalidParameter)
	v.when(b.window != nil && b.window.pending != nil, invalidState)
	m := w.at(b.seg)
	if m == nil || !m.open {
		v.when(true, invalidHandle)
		return
	}
	v.when(m.zone != p.zone, protectionViolation)
	v.when(b.seg.Off < 0 || b.seg.Off+b.seg.Len > len(m.bytes), invalidParameter)
	v.when(b.priv&remoteRead != 0 && m.priv&localRead == 0, privilegesViolation)
	v.when(b.priv&(remoteWrite|remoteAtomic) != 0 && m.priv&localWrite == 0, privilegesViolation)
}

// bound executes a bind.
func (w *World) bound(p *endpoint, x *work) {
	b := x.bind
	m := b.window
	if b.seg.Len > 0 && b.priv != 0 {
		if !w.at(b.seg).open {
			w.fail(p, errBindFailed)
			return
		}
		m.bound, m.lost, b.was = b, false, true
	} else {
		m.bound, m.lost = nil, false
	}
	w.requested(p, 0, 0, false)
}

// settle notes that a bind has come to its end.
func (x *work) settle() {
	if x.bind == nil {
		return
	}
	m := x.bind.window
	m.posted--
	if m.pending == x.bind {
		m.pending = nil
	}
}

// through is a segment of a binding, as far as it may be reached; ok is false for
// a name that is dead, and beyond its bounds.
func (w *World) through(s Segment, need int) (real Segment, ok bool) {
	if s.Region < 0 || s.Region >= len(w.names) || w.names[s.Region] == nil {
		return s, false
	}
	b := w.names[s.Region]
	real = Segment{Region: b.seg.Region, Off: s.Off, Len: s.Len}
	inside := s.Off >= b.seg.Off && s.Off+s.Len <= b.seg.Off+b.seg.Len
	return real, b.window.open && b.window.bound == b && b.priv&need != 0 && inside
}
