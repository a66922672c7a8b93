package model

import "fmt"

// window is an RMR.
type window struct {
	name    string
	open    bool
	zone    *zone
	bound   *binding  // what it is bound to; nil for nothing
	ep      *endpoint // the only endpoint that may bind it; nil if any may
	lost    bool      // a peer has invalidated the binding
	posted  int       // binds that have not completed
	pending *binding  // the binding of a bind that is posted; nil if none is
}

// binding is what a bind names for peers: a piece of a region.
type binding struct {
	window *window
	seg    Segment
	priv   int

	context int  // the remote context
	was     bool // the bind has succeeded
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
		return nil // the query may return what holds for the peer, or what the posted bind asks for
	}
	return r.check("ep scope", number(m.ep != nil), "length", b.seg.Len, "privileges", b.priv, "context", number(m.bound != nil))
}

// bindings counts the windows that are bound to a region.
func (w *World) bindings(region int) (n int) {
	for _, m := range w.windows {
		if m != nil && m.bound != nil && m.bound.seg.Region == region {
			n++
		}
	}
	return n
}

// bind judges the post of a bind, whose context is valid for peers when it has
// completed. A bind without a segment unbinds.
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

// name records a binding by its context. An earlier binding of the window may have
// had the same context only if its bind failed.
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

// settle records that a bind has completed, whatever its status.
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

// through returns the piece of a region behind a piece of a binding. ok is false if
// the binding is not valid any more, does not grant the privilege, or ends before
// the piece does.
func (w *World) through(s Segment, need int) (real Segment, ok bool) {
	if s.Region < 0 || s.Region >= len(w.names) || w.names[s.Region] == nil {
		return s, false
	}
	b := w.names[s.Region]
	real = Segment{Region: b.seg.Region, Off: s.Off, Len: s.Len}
	inside := s.Off >= b.seg.Off && s.Off+s.Len <= b.seg.Off+b.seg.Len
	return real, b.window.open && b.window.bound == b && b.priv&need != 0 && inside
}
