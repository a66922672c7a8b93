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

// modify calls Modify with the names of the fields that the command has.
func (d *driver) modify(c model.Command) (model.Result, error) {
	e := d.ep(c.On)
	p := ep.Param{
		PZ: pick(d.zones, 'z', c.Text("pz")), Recv: d.evd(c.Text("recv")), Request: d.evd(c.Text("req")), Conn: d.evd(c.Text("conn")),
		Attr: attrOf(c),
	}
	var names []string
	for arg, name := range map[string]string{
		"field": "State", "pz": "PZ", "recv": "Recv", "req": "Request", "conn": "Conn",
		"recvs": "MaxRecvDTOs", "reqs": "MaxRequestDTOs", "recviov": "MaxRecvIOV", "reqiov": "MaxRequestIOV", "readiov": "MaxReadIOV", "writeiov": "MaxWriteIOV",
		"maxmsg": "MaxMessageSize", "maxrdma": "MaxRDMASize", "readsin": "MaxReadIn", "readsout": "MaxReadOut",
		"recvflags": "RecvFlags", "reqflags": "RequestFlags", "rnr": "ReceiverNotReady",
	} {
		if c.Has(arg) {
			names = append(names, name)
		}
	}
	if err := e.Modify(p, names...); err != nil {
		return model.Result{}, err
	}
	q, err := e.Query()
	return attrValues(&q.Attr), err
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
