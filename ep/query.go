package ep

import (
	"net"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Param describes an endpoint: DAT_EP_PARAM. Fields that were not asked for are zero.
//
// LocalAddr is the connection's while it is known; in every other state it is the adapter's
// address, without a port. RemoteAddr and both qualifiers are zero in the states in which they have
// no meaning. During an attempt to connect the remote address is the one that Connect was given, and
// the local qualifier is not known yet.
type Param struct {
	IA                    any // the interface adapter, a *runtime.IA
	State                 State
	Comm                  Comm
	LocalAddr, RemoteAddr net.Addr
	LocalQual, RemoteQual uint64
	PZ                    *mem.PZ
	Recv, Request, Conn   *evd.Dispatcher
	SRQ                   *SRQ
	Attr                  Attr // what was given; see Attr
}

// Query returns the fields that mask selects. It answers to dat_ep_query.
func (e *Endpoint) Query(mask Field) (q Param, err error) {
	const op = "ep.Query"
	if err := alive(op, e); err != nil {
		return q, err
	}
	if mask&^FieldAll != 0 {
		return q, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x has bits that name no field", uint32(mask))
	}
	p, requests := &e.profile, e.box.Requests.Rules()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := e.State()
	fill(mask&FieldIA, &q.IA, e.adapter.cfg.IA)
	fill(mask&FieldState, &q.State, s)
	if own := e.adapter.attr.Address; own != "" {
		fill(mask&FieldLocalAddr, &q.LocalAddr, net.Addr(ownAddr{e.adapter.attr.Provider, own}))
	}
	if 1<<s&localValid != 0 && p.local.addr != nil {
		fill(mask&FieldLocalAddr, &q.LocalAddr, p.local.addr)
		fill(mask&FieldLocalQual, &q.LocalQual, p.local.qual)
	}
	if 1<<s&remoteValid != 0 {
		fill(mask&FieldRemoteAddr, &q.RemoteAddr, p.remote.addr)
		fill(mask&FieldRemoteQual, &q.RemoteQual, p.remote.qual)
	}
	fill(mask&FieldPZ, &q.PZ, requests.PZ)
	fill(mask&FieldRecvEVD, &q.Recv, e.box.Recvs.Rules().EVD)
	fill(mask&FieldRequestEVD, &q.Request, requests.EVD)
	fill(mask&FieldConnectEVD, &q.Conn, p.conn)
	fill(mask&FieldSRQ, &q.SRQ, e.srq)
	p.attr.copyTo(&q.Attr, mask)
	return q, nil
}

// copyTo sets the fields of mask in b.
func (a *Attr) copyTo(b *Attr, mask Field) {
	fill(mask&FieldServiceType, &b.ServiceType, a.ServiceType)
	fill(mask&FieldMaxMessageSize, &b.MaxMessageSize, a.MaxMessageSize)
	fill(mask&FieldMaxRDMASize, &b.MaxRDMASize, a.MaxRDMASize)
	fill(mask&FieldQoS, &b.QoS, a.QoS)
	fill(mask&FieldRecvFlags, &b.RecvFlags, a.RecvFlags)
	fill(mask&FieldRequestFlags, &b.RequestFlags, a.RequestFlags)
	fill(mask&FieldMaxRecvDTOs, &b.MaxRecvDTOs, a.MaxRecvDTOs)
	fill(mask&FieldMaxRequestDTOs, &b.MaxRequestDTOs, a.MaxRequestDTOs)
	fill(mask&FieldMaxRecvIOV, &b.MaxRecvIOV, a.MaxRecvIOV)
	fill(mask&FieldMaxRequestIOV, &b.MaxRequestIOV, a.MaxRequestIOV)
	fill(mask&FieldMaxReadIn, &b.MaxReadIn, a.MaxReadIn)
	fill(mask&FieldMaxReadOut, &b.MaxReadOut, a.MaxReadOut)
	fill(mask&FieldSoftHighWater, &b.SoftHighWatermark, a.SoftHighWatermark)
	fill(mask&FieldMaxReadIOV, &b.MaxReadIOV, a.MaxReadIOV)
	fill(mask&FieldMaxWriteIOV, &b.MaxWriteIOV, a.MaxWriteIOV)
	fill(mask&(FieldTransportValues|FieldTransportAttr), &b.ReceiverNotReady, a.ReceiverNotReady)
	fill(mask&(FieldProviderValues|FieldProviderAttr), &b.DrainTimeout, a.DrainTimeout)
}

// Status is a snapshot of an endpoint.
type Status struct {
	State       State
	RecvIdle    bool // no receive is outstanding
	RequestIdle bool // no request is outstanding: no send, read, write, bind or atomic
}

// Status takes a snapshot, which waits for nothing. A receive is outstanding from its post to its
// completion, also while no message has come for it.
//
// A suppressed request that has succeeded is not outstanding. If nothing but suppressed requests
// may be, Status asks the device: on loop and iwarp the answer is a matter of what was moved, and a
// later call of Status has it at the latest. A verbs device can't be asked, so there such requests
// count as outstanding until a later one completes that is not suppressed, or that the endpoint
// signals (it does so with every 16th at least), or until the connection ends.
// It answers to dat_ep_get_status.
func (e *Endpoint) Status() (Status, error) {
	if err := alive("ep.Status", e); err != nil {
		return Status{}, err
	}
	e.box.Settle()
	return Status{
		State:       e.State(),
		RecvIdle:    e.box.Recvs.Outstanding() == 0,
		RequestIdle: e.box.Requests.Outstanding() == 0,
	}, nil
}

// Counters returns the counters. It answers to dat_ib_query_counters, for an endpoint.
func (e *Endpoint) Counters() (EndpointCounters, error) {
	if err := alive("ep.Counters", e); err != nil {
		return EndpointCounters{}, err
	}
	return e.record.counters(&e.box, (*counter).since), nil
}

// ResetCounters returns the counters and sets them to 0.
func (e *Endpoint) ResetCounters() (EndpointCounters, error) {
	if err := alive("ep.ResetCounters", e); err != nil {
		return EndpointCounters{}, err
	}
	return e.record.counters(&e.box, (*counter).reset), nil
}

// Reads returns how many RDMA reads the two ends agreed on when they connected: in
// is how many the peer may have outstanding here, out how many this end may have
// outstanding at the peer; further ones wait. Attr says what was asked for. Both
// are 0 before the endpoint is connected.
func (e *Endpoint) Reads() (in, out int) {
	if e == nil {
		return 0, 0
	}
	both := e.profile.agreed.Load()
	return int(uint32(both >> 32)), int(uint32(both))
}
