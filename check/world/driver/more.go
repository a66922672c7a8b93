package driver

import (
	"fmt"
	"unsafe"

	"godat/check/world/model"
	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

func init() {
	calls["connect"], calls["common_connect"], calls["dup_connect"] = (*driver).connect, (*driver).connect, (*driver).connect
	calls["lmr_of"] = (*driver).newRegionOf
	calls["sync_read"] = only(func(d *driver, c model.Command) error { return d.ia.SyncRDMARead(d.local(c)...) })
	calls["sync_write"] = only(func(d *driver, c model.Command) error { return d.ia.SyncRDMAWrite(d.local(c)...) })
	calls["async"] = (*driver).dequeueAsync
	calls["srq_resize"] = (*driver).resizeSRQ
	calls["srq_set_lw"] = only(func(d *driver, c model.Command) error {
		return pick(d.srqs, 'q', c.On).SetLowWatermark(c.Int("receives"))
	})
	calls["set_watermark"] = only(func(d *driver, c model.Command) error { return d.ep(c.On).SetWatermark(c.Int("soft"), c.Int("hard")) })
	calls["recv_query"] = func(d *driver, c model.Command) (model.Result, error) {
		n, span, err := d.ep(c.On).RecvQuery()
		return values("allocated", n, "spread", number(span >= n)), err
	}
	calls["counters"] = func(d *driver, c model.Command) (model.Result, error) {
		n, err := d.ep(c.On).Counters()
		return values("connects", int(n.Connects), "disconnects", int(n.Disconnects), "requests", int(n.Requests), "receives", int(n.Receives)), err
	}
}

// connect makes the call of one of the three commands that connect.
func (d *driver) connect(c model.Command) (model.Result, error) {
	cfg := ep.ConnectConfig{Addr: d.ia.Attr().Address, Qual: 9999, Private: []byte(model.Private(c.Int("private")))}
	if c.Text("addr") == "nowhere" {
		cfg.Addr = "nowhere"
	}
	if c.Text("timeout") == "negative" {
		cfg.Timeout = -1
	}
	if s := pick(d.points, 's', c.Text("to")); s != nil {
		cfg.Qual = s.qual
	}
	e := d.ep(c.On)
	var err error
	switch {
	case c.Op == "dup_connect":
		err = e.DupConnect(d.ep(c.Text("of")), cfg)
	case c.Text("addr") == "malformed":
		err = e.CommonConnect(cfg.Addr, cfg)
	case c.Op == "common_connect":
		err = e.CommonConnect(fmt.Sprintf("%s:%d", cfg.Addr, cfg.Qual), cfg)
	default:
		err = e.Connect(cfg)
	}
	if err != nil {
		return model.Result{}, err
	}
	return values("state", int(e.State())), nil
}

func (d *driver) newRegionOf(c model.Command) (model.Result, error) {
	m, of := &memory{}, pick(d.regions, 'm', c.Text("of"))
	d.regions = append(d.regions, m)
	var err error
	m.lmr, err = pick(d.zones, 'z', c.Text("pz")).RegisterLMR(d.lmr(c.Text("of")), hw.Privileges(c.Bits("priv", model.Privileges)))
	if err != nil {
		m.lmr = nil
		return model.Result{}, err
	}
	m.buf = of.buf
	m.base = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.buf))))
	m.context, m.remote = m.lmr.Context(), m.lmr.RemoteContext()
	return values("context", int(m.remote)), nil
}

// dequeueAsync dequeues all asynchronous errors.
func (d *driver) dequeueAsync(model.Command) (model.Result, error) {
	buf := make([]event.Event, 64)
	n, err := d.ia.Async().Dequeue(buf)
	return model.Result{Events: d.events(buf[:n])}, err
}

func (d *driver) resizeSRQ(c model.Command) (model.Result, error) {
	q := pick(d.srqs, 'q', c.On)
	if err := q.Resize(c.Int("recvs")); err != nil {
		return model.Result{}, err
	}
	p, err := q.Query()
	return values("recvs", p.MaxRecvDTOs), err
}
