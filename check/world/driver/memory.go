package driver

import (
	"unsafe"

	"godat/check/world/model"
	"godat/hw"
	"godat/mem"
)

func (d *driver) newRegion(c model.Command) (model.Result, error) {
	m := &memory{}
	d.regions = append(d.regions, m)
	z, priv := pick(d.zones, 'z', c.Text("pz")), hw.Privileges(c.Bits("priv", model.Privileges))
	var err error
	if c.Text("by") == "alloc" {
		if m.lmr, err = z.Alloc(c.Int("size"), priv); err != nil {
			return model.Result{}, err
		}
		m.buf = m.lmr.Bytes()
	} else {
		m.buf = aligned(c.Int("size"))
		if m.lmr, err = z.Register(m.buf, priv); err != nil {
			m.lmr = nil
			return model.Result{}, err
		}
	}
	for i := range m.buf {
		m.buf[i] = model.Fill(len(d.regions)-1, i)
	}
	m.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.buf))))
	m.context, m.remote = m.lmr.Context(), m.lmr.RemoteContext()
	return values("context", int(m.remote)), nil
}

// aligned returns n bytes of memory, aligned for atomics.
func aligned(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

func (d *driver) queryRegion(c model.Command) (model.Result, error) {
	m := d.lmr(c.On)
	q, err := m.Query()
	if err != nil {
		return model.Result{}, err
	}
	size := len(m.Bytes())
	return values("length", size, "privileges", int(q.Privileges), "remote", number(m.RemoteContext() != 0),
		"covered", number(int(m.Segment(0, size).Len) >= size)), nil
}

func (d *driver) newSRQ(c model.Command) (model.Result, error) {
	receives, segments := c.Int("recvs"), c.Int("iov")
	q, err := d.ia.NewSRQ(pick(d.zones, 'z', c.Text("pz")), receives, segments)
	d.srqs = append(d.srqs, q)
	if err != nil {
		return model.Result{}, err
	}
	d.names[q] = c.On
	p, err := q.Query()
	return values("recvs", p.MaxRecvDTOs, "iov", p.MaxRecvIOV,
		"enough", number(p.MaxRecvDTOs >= receives && p.MaxRecvIOV >= segments)), err
}

func (d *driver) querySRQ(c model.Command) (model.Result, error) {
	p, err := pick(d.srqs, 'q', c.On).Query()
	return values("available", p.Available, "outstanding", p.Outstanding, "recvs", p.MaxRecvDTOs, "low", p.LowWatermark), err
}

func (d *driver) sharedRecv(c model.Command) error {
	return pick(d.srqs, 'q', c.On).PostRecv(uint64(c.Int("cookie")), d.local(c)...)
}

// named is what a bind has returned.
type named struct {
	base    uint64 // of the region
	context uint32
}

func (d *driver) newWindow(c model.Command) (model.Result, error) {
	var r *mem.RMR
	var err error
	if c.Has("ep") {
		r, err = d.ep(c.Text("ep")).NewRMR()
	} else {
		r, err = pick(d.zones, 'z', c.Text("pz")).NewRMR()
	}
	d.windows = append(d.windows, r)
	if err == nil {
		d.names[r] = c.On
	}
	return model.Result{}, err
}

func (d *driver) queryWindow(c model.Command) (model.Result, error) {
	q, err := pick(d.windows, 'w', c.On).Query()
	return values("ep scope", number(err == nil && q.Scope == mem.RMRScopeEP), "length", int(q.Segment.Len), "privileges", int(q.Privileges), "context", number(q.RemoteContext != 0)), err
}

func (d *driver) bind(c model.Command) (model.Result, error) {
	to := mem.Binding{Privileges: hw.Privileges(c.Bits("priv", model.Privileges))}
	var base uint64
	for _, s := range c.Segments("local") {
		m := d.at(s)
		base = m.base
		to.Segment = mem.Segment{Addr: m.base + uint64(s.Off), Len: uint32(s.Len), Context: m.context}
	}
	r, err := d.ep(c.On).PostBind(uint64(c.Int("cookie")), hw.Flags(c.Bits("flags", model.Flags)), pick(d.windows, 'w', c.Text("rmr")), to)
	for i := range d.binds { // a later bind may get the context of one that failed
		if err == nil && d.binds[i].context == r.Context {
			d.binds[i].base = base
		}
	}
	d.binds = append(d.binds, named{base, r.Context})
	return values("context", int(r.Context)), err
}

// through returns the remote segment for a piece of what a bind has named.
func (d *driver) through(s model.Segment) mem.RemoteSegment {
	if s.Region >= len(d.binds) {
		return mem.RemoteSegment{Len: uint32(s.Len)}
	}
	b := d.binds[s.Region]
	return mem.RemoteSegment{Addr: b.base + uint64(s.Off), Len: uint32(s.Len), Context: b.context}
}
