package ep

import (
	"net"

	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Mask selects the fields that Query fills: DAT_EP_PARAM_MASK, with DAT 2.0's
// numbers.
type Mask uint32

// The fields of Param and of its Attr.
const (
	FieldState           Mask = 0x2
	FieldLocalAddr       Mask = 0x8
	FieldLocalQual       Mask = 0x10
	FieldRemoteAddr      Mask = 0x20
	FieldRemoteQual      Mask = 0x40
	FieldPZ              Mask = 0x80
	FieldRecvEVD         Mask = 0x100
	FieldRequestEVD      Mask = 0x200
	FieldConnectEVD      Mask = 0x400
	FieldSRQ             Mask = 0x800
	FieldMaxMessageSize  Mask = 0x2000
	FieldMaxRDMASize     Mask = 0x4000
	FieldRecvFlags       Mask = 0x10000
	FieldRequestFlags    Mask = 0x20000
	FieldMaxRecvDTOs     Mask = 0x40000
	FieldMaxRequestDTOs  Mask = 0x80000
	FieldMaxRecvIOV      Mask = 0x100000
	FieldMaxRequestIOV   Mask = 0x200000
	FieldMaxReadIn       Mask = 0x400000
	FieldMaxReadOut      Mask = 0x800000
	FieldTransportValues Mask = 0x8000000 // ReceiverNotReady
	FieldProviderValues  Mask = 0x20000000

	FieldAttr Mask = 0x7FFFF000 // all of Attr
	FieldAll  Mask = 0x7FFFFFFF
)

// Param describes an endpoint: DAT_EP_PARAM. Fields that were not asked for, and
// addresses that the state gives no meaning, are zero.
type Param struct {
	State                 State
	LocalAddr, RemoteAddr net.Addr
	LocalQual, RemoteQual uint64
	PZ                    *mem.PZ
	Recv, Request, Conn   *evd.Dispatcher
	SRQ                   *SRQ
	Attr                  Attr // what was given; see Attr
}

// Query returns the fields that mask selects. It answers to dat_ep_query.
func (e *Endpoint) Query(mask Mask) (Param, error) {
	const op = "ep.Query"
	if err := e.alive(op); err != nil {
		return Param{}, err
	}
	if mask&^FieldAll != 0 {
		return Param{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x has bits that name no field", uint32(mask))
	}
	p := e.snapshot()
	p.PZ, p.Recv, p.Request, p.Conn, p.Attr = e.pz, e.recvs.evd, e.requests.evd, e.conn, e.attr
	p.SRQ = e.recvs.srq
	p.clear(^mask)
	return p, nil
}

// localValid and remoteValid are the states in which the addresses mean
// something.
const (
	remoteValid = 1<<PassiveConnectionPending | 1<<ActiveConnectionPending | 1<<TentativeConnectionPending |
		1<<DisconnectPending | 1<<CompletionPending | 1<<Connected
	localValid = 1<<PassiveConnectionPending | 1<<ActiveConnectionPending |
		1<<DisconnectPending | 1<<CompletionPending | 1<<Connected
)

// snapshot is the part of Param that changes.
func (e *Endpoint) snapshot() (p Param) {
	e.addrMu.Lock()
	defer e.addrMu.Unlock()
	p.State = e.State()
	if 1<<p.State&localValid != 0 {
		p.LocalAddr, p.LocalQual = e.local.addr, e.local.qual
	}
	if 1<<p.State&remoteValid != 0 {
		p.RemoteAddr, p.RemoteQual = e.remote.addr, e.remote.qual
	}
	return p
}

// clear zeroes the fields in mask.
func (p *Param) clear(mask Mask) {
	a := &p.Attr
	for _, f := range [...]struct {
		bit  Mask
		zero func()
	}{
		{FieldState, func() { p.State = 0 }},
		{FieldLocalAddr, func() { p.LocalAddr = nil }},
		{FieldLocalQual, func() { p.LocalQual = 0 }},
		{FieldRemoteAddr, func() { p.RemoteAddr = nil }},
		{FieldRemoteQual, func() { p.RemoteQual = 0 }},
		{FieldPZ, func() { p.PZ = nil }},
		{FieldRecvEVD, func() { p.Recv = nil }},
		{FieldRequestEVD, func() { p.Request = nil }},
		{FieldConnectEVD, func() { p.Conn = nil }},
		{FieldSRQ, func() { p.SRQ = nil }},
		{FieldMaxMessageSize, func() { a.MaxMessageSize = 0 }},
		{FieldMaxRDMASize, func() { a.MaxRDMASize = 0 }},
		{FieldRecvFlags, func() { a.RecvFlags = 0 }},
		{FieldRequestFlags, func() { a.RequestFlags = 0 }},
		{FieldMaxRecvDTOs, func() { a.MaxRecvDTOs = 0 }},
		{FieldMaxRequestDTOs, func() { a.MaxRequestDTOs = 0 }},
		{FieldMaxRecvIOV, func() { a.MaxRecvIOV = 0 }},
		{FieldMaxRequestIOV, func() { a.MaxRequestIOV = 0 }},
		{FieldMaxReadIn, func() { a.MaxReadIn = 0 }},
		{FieldMaxReadOut, func() { a.MaxReadOut = 0 }},
		{FieldTransportValues, func() { a.ReceiverNotReady = 0 }},
		{FieldProviderValues, func() { a.DrainTimeout = 0 }},
	} {
		if mask&f.bit != 0 {
			f.zero()
		}
	}
}

// Status is a snapshot of an endpoint.
type Status struct {
	State       State
	RecvIdle    bool // no receive is outstanding
	RequestIdle bool // no request is outstanding
}

// Status takes a snapshot. It answers to dat_ep_get_status.
func (e *Endpoint) Status() (Status, error) {
	if err := e.alive("ep.Status"); err != nil {
		return Status{}, err
	}
	w := e.word.Load()
	return Status{
		State:       e.State(),
		RecvIdle:    !e.recvs.outstanding(w),
		RequestIdle: !e.requests.outstanding(w),
	}, nil
}
