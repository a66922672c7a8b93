package ep

import (
	"time"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/hw"
)

// make makes an endpoint: UNCONNECTED if cfg has a zone, else TENTATIVE_CONNECTION_PENDING.
func (a *endpointRegistry) make(op string, cfg Config, attr Attr) (*Endpoint, error) {
	e := &Endpoint{
		adapter: a, number: endpoints.Add(1),
		context: cfg.Context, srq: cfg.SRQ, endIsLast: cfg.EndIsLast, record: &record{made: time.Now()},
	}
	e.profile.box = &e.box
	e.box.Init(&e.record.Cold, line.Config{
		Source: e, Owner: (*home)(e), Crew: &a.crew, Prompt: !a.attr.NotReadyWait || a.attr.Strict,
		RequestDepth: attr.MaxRequestDTOs, RequestIOV: attr.MaxRequestIOV,
		RecvDepth: attr.MaxRecvDTOs, RecvIOV: attr.MaxRecvIOV,
	})
	e.ctl.init(&e.box)
	if cfg.PZ == nil {
		e.box.SetState(inBox(life.TentativeConnectionPending))
	}
	e.marks.setSoft(e, attr.SoftHighWatermark)
	e.marks.hard.Store(NoWatermark)
	fitting{e}.set(&parts{pz: cfg.PZ, recv: cfg.Recv, request: cfg.Request, conn: cfg.Conn, attr: attr})
	if err := a.furnish(op, e); err != nil {
		return nil, err
	}
	return e, nil
}

// furnish takes what the endpoint needs of other objects: all of it, or after an error nothing.
func (a *endpointRegistry) furnish(op string, e *Endpoint) (err error) {
	if e.key, _, err = a.endpoints.Insert(func(uint32) *Endpoint { return e }); err != nil {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEP, "%w", err)
	}
	e.box.SetIDs(line.IDs{
		Request: idBase(kindRequest, e.key), RequestEnd: idBase(kindRequestEnd, e.key),
		Recv: idBase(kindRecv, e.key), RecvEnd: idBase(kindRecvEnd, e.key), Mark: idBase(kindMark, e.key),
	})
	p := e.parts()
	if _, err = p.acquire(e, &parts{}); err != nil {
		a.endpoints.Remove(e.key)
		return wrap(op, err)
	}
	e.box.SetQP(p.qp)
	fitting{e}.equip(&p)
	a.eps.put(e, e)
	a.counters.endpoints.whole.Add(1)
	fitting{e}.measure()
	return nil
}
