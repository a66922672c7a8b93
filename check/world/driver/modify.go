package driver

import (
	"math"
	"time"

	"godat/check/world/model"
	"godat/ep"
	"godat/hw"
)

func init() { calls["modify"] = (*driver).modify }

// attrValues returns the attributes that an endpoint was given. A device's longest
// message may be more than an int of 32 bits holds.
func attrValues(a *ep.Attr) model.Result {
	return values("recvs", a.MaxRecvDTOs, "reqs", a.MaxRequestDTOs, "recviov", a.MaxRecvIOV, "reqiov", a.MaxRequestIOV,
		"readiov", a.MaxReadIOV, "writeiov", a.MaxWriteIOV,
		"maxmsg", int(min(a.MaxMessageSize, math.MaxInt)), "maxrdma", int(min(a.MaxRDMASize, math.MaxInt)), "readsin", a.MaxReadIn, "readsout", a.MaxReadOut)
}

// modify calls Modify with a mask of the fields that the command names.
func (d *driver) modify(c model.Command) (model.Result, error) {
	e := d.ep(c.On)
	p := ep.Param{
		PZ: pick(d.zones, 'z', c.Text("pz")), Recv: d.evd(c.Text("recv")), Request: d.evd(c.Text("req")), Conn: d.evd(c.Text("conn")),
		Attr: attrOf(c),
	}
	var mask ep.Field
	for name, bit := range map[string]ep.Field{
		"mask": ep.FieldState, "pz": ep.FieldPZ, "recv": ep.FieldRecvEVD, "req": ep.FieldRequestEVD, "conn": ep.FieldConnectEVD,
		"recvs": ep.FieldMaxRecvDTOs, "reqs": ep.FieldMaxRequestDTOs, "recviov": ep.FieldMaxRecvIOV, "reqiov": ep.FieldMaxRequestIOV,
		"readiov": ep.FieldMaxReadIOV, "writeiov": ep.FieldMaxWriteIOV,
		"maxmsg": ep.FieldMaxMessageSize, "maxrdma": ep.FieldMaxRDMASize, "readsin": ep.FieldMaxReadIn, "readsout": ep.FieldMaxReadOut,
		"recvflags": ep.FieldRecvFlags, "reqflags": ep.FieldRequestFlags, "rnr": ep.FieldTransportAttr,
	} {
		if c.Has(name) {
			mask |= bit
		}
	}
	if err := e.Modify(mask, p); err != nil {
		return model.Result{}, err
	}
	q, err := e.Query(ep.FieldAttr)
	return attrValues(&q.Attr), err
}

// worse returns mask or, with bad, a mask with a bit that is no field.
func worse[M ~uint32](mask M, bad bool) M {
	if bad {
		return 1 << 30
	}
	return mask
}

// attrOf returns the attributes that a command asks for.
func attrOf(c model.Command) ep.Attr {
	attr := ep.Attr{
		MaxRecvDTOs: c.Int("recvs"), MaxRequestDTOs: c.Int("reqs"), MaxRecvIOV: c.Int("recviov"), MaxRequestIOV: c.Int("reqiov"),
		MaxReadIOV: c.Int("readiov"), MaxWriteIOV: c.Int("writeiov"),
		MaxMessageSize: uint64(c.Int("maxmsg")), MaxRDMASize: uint64(c.Int("maxrdma")),
		MaxReadIn: c.Int("readsin"), MaxReadOut: c.Int("readsout"),
		RecvFlags: hw.Flags(c.Bits("recvflags", model.Flags)), RequestFlags: hw.Flags(c.Bits("reqflags", model.Flags)),
		ReceiverNotReady: time.Hour, DrainTimeout: -1,
	}
	if c.Text("rnr") == "fail" {
		attr.ReceiverNotReady = -1
	}
	return attr
}
