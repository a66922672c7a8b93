package ep

import (
	"godat/hw"
	"godat/internal/door"
)

// parts returns the endpoint's present parts. The caller holds e.ctl, or is still making e.
func (e *Endpoint) parts() parts {
	feed, _ := e.box.Recvs.Shared().(*feed)
	return parts{
		pz: e.box.Requests.Rules().PZ, recv: e.box.Recvs.Rules().EVD, request: e.box.Requests.Rules().EVD, conn: e.profile.conn,
		attr: e.profile.attr, feed: feed, device: device{e.box.QP(), e.ctl.cqs},
	}
}

// acquire takes for e what p has beyond old, and fills in what it got: all of it, or after an error
// nothing. The function that it returns gives all of it back; if that fails, p.giveBack tries again.
func (p *parts) acquire(e *Endpoint, old *parts) (giveUp func() error, err error) {
	var undos, common []func() // common: undos for dispatchers that old has, too
	defer func() {
		for i := len(undos) - 1; err != nil && i >= 0; i-- {
			undos[i]()
		}
	}()
	if err = p.checkForeign(&e.adapter.base); err != nil {
		return nil, err
	}
	if p.pz != old.pz {
		zone := p.pz.Zone(door.Key{})
		if err = zone.Use(""); err != nil {
			return nil, err
		}
		undos = append(undos, zone.Unuse)
	}
	_, was := old.feeds()
	to, with := p.feeds()
	for _, d := range to {
		back, err := wiring(d).Feeds().Replace(was[d], with[d])
		if err != nil {
			return nil, err
		}
		undos = append(undos, back)
		if was[d] != nil {
			common = append(common, back)
		}
	}
	if srq := e.srq; srq == nil {
		p.recvRoom = p.attr.MaxRecvDTOs + 2
	} else if old.feed == nil || p.recv != old.recv {
		if p.feed, p.recvRoom, err = srq.attach(p.recv); err != nil {
			return nil, err
		}
		p.recvRoom += 2
		undos = append(undos, func() { srq.detach(p.feed) })
	}
	p.sendRoom = p.attr.MaxRequestDTOs + 2
	if p.pz != nil && p.needsDevice(e, old) {
		if err = p.newDevice(e); err != nil {
			_ = p.device.close(e.adapter) // without a queue pair it does not fail
			return nil, err
		}
	}
	return func() error {
		for _, back := range common {
			back()
		}
		return p.giveBack(e, old)
	}, nil
}

// giveBack gives back what e has for p and does not need for next. If the queue
// pair can't be closed it gives back nothing.
func (p *parts) giveBack(e *Endpoint, next *parts) error {
	if p.qp != nil && p.qp != next.qp {
		if err := p.device.close(e.adapter); err != nil {
			return err
		}
	}
	if p.feed != nil && p.feed != next.feed {
		e.srq.detach(p.feed)
	}
	to, was := p.feeds()
	_, with := next.feeds()
	for _, d := range to {
		if with[d] == nil {
			_, _ = wiring(d).Feeds().Replace(was[d], nil) // it fails only for feeds to add
		}
	}
	if p.pz != nil && p.pz != next.pz {
		p.pz.Zone(door.Key{}).Unuse()
	}
	return nil
}

// needsDevice reports whether p needs another queue pair than old has. On a polled device it does for
// another dispatcher or SolicitedWait, since the queue pair's completion queue decides what wakes the
// poller.
func (p *parts) needsDevice(e *Endpoint, old *parts) bool {
	return old.qp == nil || p.pz != old.pz || shape(&p.attr) != shape(&old.attr) ||
		e.adapter.cfg.CQs != nil && (p.recv != old.recv || p.request != old.request ||
			(p.attr.RecvFlags^old.attr.RecvFlags)&hw.SolicitedWait != 0)
}

// shape is the part of the attributes that a queue pair is made for.
func shape(a *Attr) hw.QPConfig {
	return hw.QPConfig{
		SendDepth: a.MaxRequestDTOs, RecvDepth: a.MaxRecvDTOs,
		SendSegments: a.MaxRequestIOV, RecvSegments: a.MaxRecvIOV,
		ReadsIn: a.MaxReadIn, ReadsOut: a.MaxReadOut,
		NotReady: a.ReceiverNotReady,
	}
}

// newDevice reserves room in completion queues for p, and makes its queue pair.
func (p *parts) newDevice(e *Endpoint) (err error) {
	pool := e.adapter.cfg.CQs
	cfg := shape(&p.attr)
	cfg.Zone, cfg.Facts, cfg.Number = p.pz.Zone(door.Key{}).Device(), (*reports)(e), e.key
	cfg.SendEnd, cfg.RecvEnd = idBase(kindRequestEnd, e.key), idBase(kindRecvEnd, e.key)
	if srq := e.srq; srq != nil {
		cfg.SRQ = srq.hw
	}
	p.qp, p.sendCQ, p.recvCQ = nil, nil, nil
	if pool == nil {
		cfg.SendSink, cfg.RecvSink = &e.box.Requests, &e.box.Recvs
	} else {
		if p.sendCQ, err = pool.Attach(p.request, p.sendRoom); err != nil {
			return err
		}
		if p.recvCQ, err = pool.Attach(p.recv, p.recvRoom); err != nil {
			return err
		}
		cfg.SendCQ, cfg.RecvCQ = p.sendCQ, p.recvCQ
	}
	qp, err := e.adapter.cfg.Device.NewQP(cfg)
	if err != nil {
		return err
	}
	p.qp = qp
	_, traces := qp.(hw.Tracer)
	e.adapter.traces.Store(traces)
	e.adapter.qps.put(qp, e)
	return nil
}

// close gives back what d has: nothing, if the queue pair can't be closed.
func (d *device) close(a *endpointRegistry) error {
	if d.qp != nil {
		if err := d.qp.Close(); err != nil {
			return err
		}
		a.qps.remove(d.qp)
	}
	if d.sendCQ != nil {
		a.cfg.CQs.Detach(d.sendCQ, d.sendRoom)
	}
	if d.recvCQ != nil {
		a.cfg.CQs.Detach(d.recvCQ, d.recvRoom)
	}
	return nil
}

// closeReplaced gives back what the endpoint had before each Modify, or had acquired for one that
// failed, and needs no more. What can't be given back stays listed. The caller holds e.ctl.
func (e *Endpoint) closeReplaced() error {
	for len(e.ctl.replaced) > 0 {
		m := &e.ctl.replaced[0]
		if err := m.old.giveBack(e, &m.now); err != nil {
			return err
		}
		e.ctl.replaced = e.ctl.replaced[1:]
	}
	return nil
}
