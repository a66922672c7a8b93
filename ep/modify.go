package ep

import (
	"slices"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// Modify sets the named fields to their values in p, all of them or none. A name is that of a field of
// Param or of its Attr, as "PZ" or "MaxRecvDTOs"; "Attr" stands for all of Attr. The zone can be
// changed while the endpoint is UNCONNECTED or TENTATIVE_CONNECTION_PENDING, dispatchers and
// attributes also while it is RESERVED or PASSIVE_CONNECTION_PENDING; but ReceiverNotReady and
// DrainTimeout only while it is UNCONNECTED, and RecvFlags only while no receives are posted. Every
// other name is INVALID_PARAMETER in any state.
//
// Attributes are as for NewEndpoint: 0 takes the default, and Query tells what was given. Depths and
// segments do not shrink. A dispatcher may be nil. An endpoint that has windows of its own (NewRMR)
// keeps its zone, and can't grow.
//
// Receives stay posted; those in memory of another zone than the new one fail when a message comes
// for them. A receive that is posted while Modify runs is checked against the old attributes or the
// new ones. One that was posted before completes to the dispatcher that it was posted for, which
// stays in use until the endpoint is reset or closed. The endpoint may need another queue pair of
// the device; if the device can't close the old one yet, Close does, and the old zone and
// dispatchers stay in use until then.
// It answers to dat_ep_modify.
func (e *Endpoint) Modify(p Param, names ...string) error {
	const op = "ep.Modify"
	if err := alive(op, e); err != nil {
		return err
	}
	change, err := fieldsOf(op, names)
	if err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	if s := e.at(); !change.may(s) {
		return s.Refusal(op)
	}
	m := modification{fields: change, old: e.parts()}
	if m.now, err = m.old.with(op, e, change, &p); err != nil {
		return err
	}
	if m.old.qp != nil && m.now.needsDevice(e, &m.old) && e.windows.HasWindows() {
		return wrap(op, &hw.Error{Type: hw.InvalidState, Sub: e.at().Subtype(), Text: "the endpoint has windows, which depend on it as it is"})
	}
	done, err := e.ctl.outlast(&m)
	if err != nil {
		return wrap(op, err)
	}
	defer done()
	giveUp, err := m.now.acquire(e, &m.old)
	if err != nil {
		return wrap(op, err)
	}
	if err := e.ctl.do(&control{op: op, in: life.InModify, mod: &m}); err != nil {
		if giveUp() != nil { // the device can't close the new queue pair now: Close tries again
			e.ctl.replaced = append(e.ctl.replaced, modification{old: m.now, now: m.old})
		}
		return err
	}
	e.ctl.replaced = append(e.ctl.replaced, m)
	_ = e.closeReplaced() // if the device can't close the old queue pair now, Close tries again
	return nil
}

// outlast keeps the dispatcher that Modify takes away in use, if receives are posted for it. The
// caller calls done at the end, which releases the dispatcher if Modify has failed.
func (ctl *controls) outlast(m *modification) (done func(), err error) {
	o := owed{m.old.recv, m.old.attr.RecvFlags}
	if o.to == nil || m.now.recv == o.to || ctl.box.Recvs.Outstanding() == 0 || slices.Contains(ctl.owed, o) {
		return func() {}, nil
	}
	if err := wiring(o.to).Feeds().Attach(o.feed()); err != nil {
		return nil, err
	}
	return func() {
		if m.made {
			ctl.owed = append(ctl.owed, o)
		} else {
			wiring(o.to).Feeds().Detach(o.feed())
		}
	}, nil
}

// with returns p with those fields as in q.
func (p parts) with(op string, e *Endpoint, change fields, q *Param) (parts, error) {
	var attr []string
	for _, name := range change {
		switch name {
		case "PZ":
			if err := p.checkPZ(op, e, q.PZ); err != nil {
				return p, err
			}
			p.pz = q.PZ
		case "Recv":
			p.recv = q.Recv
		case "Request":
			p.request = q.Request
		case "Conn":
			p.conn = q.Conn
		default:
			attr = append(attr, name)
		}
	}
	if len(attr) == 0 {
		return p, nil
	}
	was := p.attr
	asked := was.again()
	asked.take(&q.Attr, attr)
	a, err := asked.resolve(op, e.adapter.attr)
	if err != nil {
		return p, err
	}
	a.MaxRecvDTOs, a.MaxRequestDTOs = max(a.MaxRecvDTOs, was.MaxRecvDTOs), max(a.MaxRequestDTOs, was.MaxRequestDTOs)
	a.MaxRecvIOV, a.MaxRequestIOV = max(a.MaxRecvIOV, was.MaxRecvIOV), max(a.MaxRequestIOV, was.MaxRequestIOV)
	if e.srq != nil {
		a.MaxRecvDTOs, a.MaxRecvIOV = 0, 0
	}
	p.attr = a
	return p, nil
}

// checkPZ returns why the endpoint can't have that zone.
func (p *parts) checkPZ(op string, e *Endpoint, pz *mem.PZ) error {
	switch {
	case pz == nil:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "an endpoint needs a protection zone: IA.NewPZ makes one, for ep.Config.PZ"}
	case e.srq != nil && pz != p.pz:
		return hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	}
	return e.adapter.ownPZ(op, pz)
}

// modify gives the endpoint its new parts. Modify has acquired what they need.
func (m *machine) modify(c *control) error {
	m.box.Token.Check()
	mod, s := c.mod, m.at()
	if !mod.fields.may(s) {
		return s.Refusal(c.op)
	}
	if mod.now.attr.RecvFlags != mod.old.attr.RecvFlags && m.box.Recvs.Outstanding() != 0 {
		return wrap(c.op, &hw.Error{Type: hw.InvalidState, Sub: s.Subtype(), Text: "receives are posted"})
	}
	fitting{m.endpoint()}.change(&mod.now)
	if slices.Contains(mod.fields, "SoftHighWatermark") {
		m.marks.setSoft(m.endpoint(), mod.now.attr.SoftHighWatermark)
	}
	m.record.note(chapter{what: what(c.in)})
	mod.made = true
	return nil
}

// fitting fits the mailbox of an endpoint out with the parts that the endpoint is made of.
type fitting struct{ e *Endpoint }

// change swaps the parts of a modified endpoint.
func (f fitting) change(now *parts) {
	a := &now.attr
	f.e.box.Grow(a.MaxRequestDTOs, a.MaxRequestIOV, a.MaxRecvDTOs, a.MaxRecvIOV)
	f.set(now)
	f.move(now.qp)
	f.equip(now)
}

// move has posts go to another queue pair.
func (f fitting) move(to hw.QP) {
	f.e.ctl.reach.Lock()
	defer f.e.ctl.reach.Unlock()
	f.e.box.Move(to)
}

// equip makes what p has taken of other objects the endpoint's.
func (f fitting) equip(p *parts) {
	f.e.ctl.cqs = p.cqs
	if p.feed != nil {
		f.e.box.Recvs.SetShared(p.feed)
	}
}

// set makes p the parts that later posts are checked against. The maker of the
// endpoint and the token's holder call it.
func (f fitting) set(p *parts) {
	f.e.profile.set(p.conn, &p.attr)
	f.setRules(p)
	f.e.box.Recvs.SetSolicitedOnly(p.attr.RecvFlags&hw.SolicitedWait != 0)
	f.e.box.SetSignals(max(1, min(16, p.attr.MaxRequestDTOs/2)))
}

// setRules replaces the rules of both queues by those for p.
func (f fitting) setRules(p *parts) {
	e, a := f.e, &p.attr
	r := line.Rules{
		PZ: p.pz, Zone: p.pz.Zone(door.Key{}), Dev: &e.adapter.attr, ReadIOV: a.MaxReadIOV, WriteIOV: a.MaxWriteIOV,
		MaxMessage: a.MaxMessageSize, MaxRDMA: a.MaxRDMASize, EndIsLast: e.endIsLast,
	}
	r.SetFlags(e.adapter.attr.Ops, a.RequestFlags, a.RecvFlags)
	e.record.Mu.Lock() // measure writes rules, too
	defer e.record.Mu.Unlock()
	r.EVD, r.Queues, r.IOV = p.request, wiring(p.request), a.MaxRequestIOV
	e.box.Requests.SetRules(r, e.adapter.latency.times(hw.OpSend))
	r.EVD, r.Queues, r.IOV, r.Shared = p.recv, wiring(p.recv), a.MaxRecvIOV, e.srq != nil
	e.box.Recvs.SetRules(r, false)
}

// measure has the endpoint's requests measured, or not any more, as the adapter has it.
func (f fitting) measure() {
	f.e.record.Mu.Lock()
	defer f.e.record.Mu.Unlock()
	q := &f.e.box.Requests
	if r, now := q.Rules(), f.e.adapter.latency.times(q.Op()); r.Measures() != now {
		q.SetRules(*r, now)
	}
}
