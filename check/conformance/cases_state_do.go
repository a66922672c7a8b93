package conformance

import (
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// The fields of an endpoint's parameters, with DAT 2.0's numbers.
const (
	fieldIA        = 0x1
	fieldState     = 0x2
	fieldLocal     = 0x8
	fieldLocalQual = 0x10
	fieldPZ        = 0x80
	fieldRecv      = 0x100
	fieldRequest   = 0x200
	fieldConn      = 0x400
	fieldService   = 0x1000
	fieldMaxSize   = 0x2000
	fieldMaxRDMA   = 0x4000
	fieldQoS       = 0x8000
	fieldFlags     = 0x10000 | 0x20000
	fieldMax       = 0x40000 | 0x80000 | 0x100000 | 0x200000 | 0x400000 | 0x800000 | 0x2000000 | 0x4000000
	fieldWatermark = 0x1000000
	fieldTransport = 0x8000000 | 0x10000000
	fieldProvider  = 0x20000000 | 0x40000000
)

// modifies maps each row of the table that modifies to a mask and to new values.
var modifies = map[string]struct {
	mask  ep.Field
	param ep.Param
}{
	"modify_service":  {fieldService, ep.Param{}},
	"modify_size":     {fieldMaxSize | fieldMaxRDMA, with(ep.Attr{MaxMessageSize: 100, MaxRDMASize: 200})},
	"modify_qos":      {fieldQoS, ep.Param{}},
	"modify_flags":    {fieldFlags, with(ep.Attr{RecvFlags: hw.EVDThreshold, RequestFlags: hw.EVDThreshold})},
	"modify_watermrk": {fieldWatermark, with(ep.Attr{SoftHighWatermark: 5})},
	"modify_transprt": {fieldTransport, with(ep.Attr{ReceiverNotReady: 3 * time.Second})},
	"modify_provider": {fieldProvider, with(ep.Attr{DrainTimeout: 4 * time.Second})},
	"modify_max": {fieldMax, with(ep.Attr{
		MaxRecvDTOs: 20, MaxRequestDTOs: 21, MaxRecvIOV: 4, MaxRequestIOV: 4, MaxReadIOV: 1, MaxWriteIOV: 4, MaxReadIn: 1, MaxReadOut: 2,
	})},

	"modify_ia":      {fieldIA, ep.Param{}},
	"modify_state":   {fieldState, ep.Param{State: ep.Connected}},
	"modify_address": {fieldLocal, ep.Param{}},
	"modify_qual":    {fieldLocalQual, ep.Param{LocalQual: 1}},

	"modify_path":     {0x4, ep.Param{}},
	"modify_peer":     {0x20, ep.Param{}},
	"modify_peerqual": {0x40, ep.Param{}},
	"modify_srq":      {0x800, ep.Param{}},
}

func with(a ep.Attr) ep.Param { return ep.Param{Attr: a} }

// do makes one call with valid arguments.
func (e *end) do(op string) error {
	if _, posts := operations[op]; posts {
		return e.post(op, cellCookie, 0)
	}
	if m, ok := modifies[op]; ok {
		return e.modify(m.mask, m.param)
	}
	switch op {
	case "query":
		_, err := e.ep.Query(ep.FieldAll)
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
		err := e.ep.Modify(fieldPZ, ep.Param{PZ: pz})
		if err == nil {
			e.rig.later(func() error { return e.ep.Modify(fieldPZ, ep.Param{PZ: e.node.pz}) })
		}
		return err
	case "modify_evd":
		return e.ep.Modify(fieldRecv|fieldRequest|fieldConn, ep.Param{Recv: e.recv, Request: e.req, Conn: e.conn})
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
func (e *end) modify(mask ep.Field, to ep.Param) error {
	if err := e.ep.Modify(mask, to); err != nil {
		return err
	}
	p, err := e.ep.Query(mask)
	require.NoError(e.rig, err)
	require.Equal(e.rig, to, p, "what was modified")
	return nil
}
