package model

// window is an RMR.
type window struct {
	handle
	zone        *zone
	ep          *endpoint // the only endpoint that may bind it; nil if any may
	bound       *binding  // what it is bound to; nil for nothing
	invalidated bool      // a peer has invalidated the binding
	posted      int       // binds that have not completed
	pending     *binding  // the binding of a bind that is posted; nil if none is
}

// binding is what a bind names for peers: a piece of a region.
type binding struct {
	window    *window
	seg       Segment
	priv      int
	context   int  // the remote context
	succeeded bool // the bind has succeeded
}

func (w *World) newWindow(c *call) {
	m := &window{handle: handle{c.On, true}, zone: w.memory.zones.named(c.Text("pz"))}
	if c.Has("ep") {
		if m.ep = w.eps.named(c.Text("ep")); need(c, m.ep) {
			m.zone = m.ep.zone
			c.refuse(m.zone == nil, invalidState|subPZ)
		}
	} else {
		need(c, m.zone)
	}
	w.memory.windows.add(c, m)
}

func (m *window) free(c *call) {
	if m.handle.free(c, m.posted > 0, invalidState) {
		m.bound = nil
	}
}

func (m *window) query(c *call) {
	if !c.succeeded() || m.invalidated && m.posted > 0 {
		return // the query may return what holds for the peer, or what the posted bind asks for
	}
	b := m.bound
	if b == nil {
		b = &binding{}
	}
	c.expect("ep scope", number(m.ep != nil), "length", b.seg.Len, "privileges", b.priv, "context", number(m.bound != nil))
}

// belongs reports whether p may bind the window and p's peer may use it.
func (m *window) belongs(p *endpoint) bool { return m.ep == p || m.ep == nil && m.zone == p.zone }

// postBind judges the post of a bind, whose context is valid for peers when it has
// completed. A bind without a segment unbinds.
func (w *World) postBind(c *call) {
	p, m := w.eps.named(c.On), w.memory.windows.named(c.Text("rmr"))
	x := workOf(c.Command)
	b := &binding{window: m, priv: c.Bits("priv", Privileges), context: c.Values["context"]}
	if len(x.segs) > 0 {
		b.seg, x.segs = x.segs[0], nil
	}
	w.memory.binds = append(w.memory.binds, nil)
	need(c, m)
	if need(c, p) {
		c.refuse(m != nil && (m.zone != p.zone || m.ep != nil && m.ep != p), protectionViolation)
		p.refuse(c, x, 0)
		p.req.refuse(c, 1)
		c.refuse(p.req != nil && p.req.takes&streamRMR == 0, invalidState|subEVDRequest)
		if b.binds() {
			w.memory.refuseBinding(c, p, b)
		}
	}
	if !c.succeeded() {
		return
	}
	m.posted++
	x.bind = b
	if b.binds() {
		m.pending = b
		w.memory.record(c, b)
	}
	p.take(x)
}

// binds reports whether the bind does not unbind.
func (b *binding) binds() bool { return b.seg.Len > 0 && b.priv != 0 }

func (m *memory) refuseBinding(c *call, p *endpoint, b *binding) {
	c.refuse(b.priv&remotePrivilege == 0, invalidParameter)
	c.refuse(b.window != nil && b.window.pending != nil, invalidState)
	r := m.at(b.seg)
	if need(c, r); !there(r) {
		return
	}
	c.refuse(r.zone != p.zone, protectionViolation)
	c.refuse(!r.holds(b.seg), invalidParameter)
	c.refuse(b.priv&remoteRead != 0 && r.priv&localRead == 0, privilegesViolation)
	c.refuse(b.priv&(remoteWrite|remoteAtomic) != 0 && r.priv&localWrite == 0, privilegesViolation)
}

// record records a binding by its context. An earlier binding of the window may have
// had the same context only if its bind failed.
func (m *memory) record(c *call, b *binding) {
	m.binds[len(m.binds)-1] = b
	for i, o := range m.binds {
		if o == nil || o.window != b.window || o.context != b.context {
			continue
		}
		if o.succeeded {
			c.failf("the context is that of b%d, which it replaces", i)
		}
		m.binds[i] = b
	}
}

// bind returns the binding of a segment; nil for none.
func (m *memory) bind(s Segment) *binding {
	if s.Region < 0 || s.Region >= len(m.binds) {
		return nil
	}
	return m.binds[s.Region]
}

// resolve returns the piece of a region behind a piece of a binding. ok is false if
// the binding is not valid any more, does not grant the privilege, or ends before
// the piece does.
func (b *binding) resolve(s Segment, privilege int) (real Segment, ok bool) {
	if b == nil {
		return s, false
	}
	inside := s.Off >= b.seg.Off && s.Off+s.Len <= b.seg.Off+b.seg.Len
	return Segment{Region: b.seg.Region, Off: s.Off, Len: s.Len}, b.valid() && b.priv&privilege != 0 && inside
}

// valid reports whether the binding is the one of its window.
func (b *binding) valid() bool { return b.window.open && b.window.bound == b }

// execute binds or unbinds the window.
func (b *binding) execute() {
	b.window.invalidated, b.window.bound = false, nil
	if b.binds() {
		b.window.bound, b.succeeded = b, true
	}
}

// completed records that a bind has completed, whatever its status.
func (b *binding) completed() {
	b.window.posted--
	if b.window.pending == b {
		b.window.pending = nil
	}
}

// invalidate ends the access of p's peer by a context. It reports whether the
// context is one of a window of p, or of a window or a region of p's zone.
func (m *memory) invalidate(p *endpoint, s Segment) (context int, ok bool) {
	if s.Window {
		b := m.bind(s)
		if b == nil || !b.valid() || !b.window.belongs(p) {
			return 0, false
		}
		b.window.bound, b.window.invalidated = nil, true
		return b.context, true
	}
	r := m.at(s)
	if !there(r) || r.zone != p.zone || r.remote()&remotePrivilege == 0 {
		return 0, false
	}
	r.invalidated = true
	return r.context, true
}
