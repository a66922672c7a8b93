package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
)

// parts are what an endpoint is made of, and what it has taken of other objects for that.
type parts struct {
	pz                  *mem.PZ
	recv, request, conn *evd.Dispatcher
	attr                Attr
	feed                *feed // the shared receive queue's feed for recv
	device
}

// device is what an endpoint has taken of its device. On a polled device each
// direction has room in a completion queue: two places more than its depth, for its
// end and for a provider's own marker.
type device struct {
	qp hw.QP // nil without a zone
	cqs
}

// cqs are the completion queues of a polled device, and the room there.
type cqs struct {
	sendCQ, recvCQ     hw.CQ
	sendRoom, recvRoom int
}

// parts returns the endpoint's present parts. The caller holds e.ctl, or is still making e.
func (ctl *controls) parts() parts {
	feed, _ := ctl.e.box.Recvs.Shared().(*feed)
	return parts{
		pz: ctl.e.box.Requests.Rules().PZ, recv: ctl.e.box.Recvs.Rules().EVD, request: ctl.e.box.Requests.Rules().EVD, conn: ctl.e.profile.conn,
		attr: ctl.e.profile.attr, feed: feed, device: device{ctl.e.box.QP(), ctl.cqs},
	}
}

// feeds returns the dispatchers in the order of first use, and what the endpoint feeds each with.
func (p *parts) feeds() (to []*evd.Dispatcher, with map[*evd.Dispatcher][]delivery.Feed) {
	with = make(map[*evd.Dispatcher][]delivery.Feed)
	for _, f := range [...]struct {
		d    *evd.Dispatcher
		feed delivery.Feed
	}{
		{p.recv, delivery.Feed{Streams: event.StreamDTO, Flags: p.attr.RecvFlags}},
		{p.request, delivery.Feed{Streams: event.StreamDTO, Flags: p.attr.RequestFlags}},
		{p.conn, delivery.Feed{Streams: event.StreamConnection}},
	} {
		if f.d == nil {
			continue
		}
		if with[f.d] == nil {
			to = append(to, f.d)
		}
		with[f.d] = append(with[f.d], f.feed)
	}
	return to, with
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
	if err = e.adapter.ownParts(p); err != nil {
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
	cfg.Zone, cfg.Facts, cfg.Number = p.pz.Zone(door.Key{}).Device(), &e.facts, e.key
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
func (d *device) close(a *Adapter) error {
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
