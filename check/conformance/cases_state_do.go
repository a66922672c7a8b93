package conformance

import (
	"reflect"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// modifies maps each row of the table that modifies to new values, and to the fields that get them.
var modifies = map[string]struct {
	param ep.Param
	names []string
}{
	"modify_service":  {ep.Param{}, []string{"ServiceType"}},
	"modify_size":     {with(ep.Attr{MaxMessageSize: 100, MaxRDMASize: 200}), []string{"MaxMessageSize", "MaxRDMASize"}},
	"modify_qos":      {ep.Param{}, []string{"QoS"}},
	"modify_flags":    {with(ep.Attr{RecvFlags: hw.EVDThreshold, RequestFlags: hw.EVDThreshold}), []string{"RecvFlags", "RequestFlags"}},
	"modify_watermrk": {with(ep.Attr{SoftHighWatermark: 5}), []string{"SoftHighWatermark"}},
	"modify_transprt": {with(ep.Attr{ReceiverNotReady: 3 * time.Second}), []string{"ReceiverNotReady"}},
	"modify_provider": {with(ep.Attr{DrainTimeout: 4 * time.Second}), []string{"DrainTimeout"}},
	"modify_max": {
		with(ep.Attr{
			MaxRecvDTOs: 20, MaxRequestDTOs: 21, MaxRecvIOV: 4, MaxRequestIOV: 4, MaxReadIOV: 1, MaxWriteIOV: 4, MaxReadIn: 1, MaxReadOut: 2,
		}),
		[]string{"MaxRecvDTOs", "MaxRequestDTOs", "MaxRecvIOV", "MaxRequestIOV", "MaxReadIOV", "MaxWriteIOV", "MaxReadIn", "MaxReadOut"},
	},

	"modify_ia":      {ep.Param{}, []string{"IA"}},
	"modify_state":   {ep.Param{State: ep.Connected}, []string{"State"}},
	"modify_address": {ep.Param{}, []string{"LocalAddr"}},
	"modify_qual":    {ep.Param{LocalQual: 1}, []string{"LocalQual"}},

	"modify_path":     {ep.Param{}, []string{"Comm"}},
	"modify_peer":     {ep.Param{}, []string{"RemoteAddr"}},
	"modify_peerqual": {ep.Param{}, []string{"RemoteQual"}},
	"modify_srq":      {ep.Param{}, []string{"SRQ"}},
}

func with(a ep.Attr) ep.Param { return ep.Param{Attr: a} }

// do makes one call with valid arguments.
func (e *end) do(op string) error {
	if _, posts := operations[op]; posts {
		return e.post(op, cellCookie, 0)
	}
	if m, ok := modifies[op]; ok {
		return e.modify(m.param, m.names...)
	}
	switch op {
	case "query":
		_, err := e.ep.Query()
		return err
	case "status":
		_, err := e.ep.Status()
		return err
	case "recv_query":
		_, _, err := e.ep.RecvQuery()
		return err
	case "set_watermark":
		return e.ep.SetWatermark(5, 6)
	case "post_recv_srq":
		return e.ep.PostRecv(cellCookie, 0, e.mem.Segment(0, 64))
	case "rsp_create":
		rsp, err := e.node.ia.NewRSP(ep.RSPConfig{Endpoint: e.ep, Dispatcher: e.node.dispatcher(4, event.StreamCR)})
		if err == nil {
			e.rig.later(rsp.Close)
		}
		return err
	case "modify_pz":
		pz := e.node.zone()
		err := e.ep.Modify(ep.Param{PZ: pz}, "PZ")
		if err == nil {
			e.rig.later(func() error { return e.ep.Modify(ep.Param{PZ: e.node.pz}, "PZ") })
		}
		return err
	case "modify_evd":
		return e.ep.Modify(ep.Param{Recv: e.recv, Request: e.req, Conn: e.conn}, "Recv", "Request", "Conn")
	case "disc_abrupt":
		return e.ep.Disconnect(ep.Abrupt)
	case "disc_graceful":
		return e.ep.Disconnect(ep.Graceful)
	case "reset":
		return e.ep.Reset()
	case "free":
		return e.ep.Close()
	}
	return e.doConnect(op)
}

// doConnect is do for the calls that connect.
func (e *end) doConnect(op string) error {
	switch op {
	case "connect":
		return e.ep.Connect(e.node.listen().at())
	case "common_connect":
		return e.ep.CommonConnect(e.node.listen().hostPort(), ep.ConnectConfig{})
	case "dup_connect":
		a, b := e.node.end(), e.rig.node().end()
		b.node.listen().join(a, b)
		return e.ep.DupConnect(a.ep, ep.ConnectConfig{})
	case "dup_source":
		return e.node.end().ep.DupConnect(e.ep, ep.ConnectConfig{})
	case "cr_accept":
		peer, s := e.rig.node().end(), e.node.listen()
		if err := peer.ep.Connect(s.at()); err != nil {
			return err
		}
		return s.request().Accept(e.ep, nil)
	case "cr_accept_own":
		return e.cr.Accept(nil, nil)
	}
	e.rig.Fatalf("no such operation: %s", op)
	return nil
}

// modify calls Modify and, if it succeeds, compares the new values with a query.
func (e *end) modify(to ep.Param, names ...string) error {
	if err := e.ep.Modify(to, names...); err != nil {
		return err
	}
	p := get(e.rig, e.ep.Query)
	for _, name := range names {
		require.Equal(e.rig, field(&to, name), field(&p, name), name)
	}
	return nil
}

// field returns the field of that name, of the parameters or of their attributes.
func field(p *ep.Param, name string) any {
	v := reflect.ValueOf(p).Elem().FieldByName(name)
	if !v.IsValid() {
		v = reflect.ValueOf(p.Attr).FieldByName(name)
	}
	return v.Interface()
}
