package ep

import (
	"sync/atomic"

	"godat/evd"
	"godat/hw"
)

// RSP is a reserved service point: it listens for one connection request, for one
// endpoint. Its methods may be called from any goroutine. It answers to
// DAT_RSP_HANDLE.
//
// [godat/runtime.IA.NewRSP] makes one; Close releases the endpoint if no request has come.
type RSP struct {
	point    point
	endpoint *Endpoint
	used     atomic.Bool // the request has come, or can't come any more
}

// RSPConfig says where a reserved service point listens, and for which endpoint.
type RSPConfig struct {
	Addr       string // local address; empty means all of the adapter's
	Qual       uint64 // connection qualifier, up to hw.MaxQual; 0 lets the provider choose
	Endpoint   *Endpoint
	Dispatcher *evd.Dispatcher
}

// NewRSP makes a service point for an UNCONNECTED endpoint, which is RESERVED from
// then on. The first connection request makes the endpoint
// PASSIVE_CONNECTION_PENDING and is an event on the dispatcher; the service point
// rejects later requests (NON_PEER_REJECTED). CR.Accept(nil, …) connects the
// endpoint; if the request is rejected or handed off, the endpoint is UNCONNECTED
// again.
// It answers to dat_rsp_create.
func (a *Adapter) NewRSP(cfg RSPConfig) (*RSP, error) {
	const op = "ep.NewRSP"
	e := cfg.Endpoint
	if err := a.checkPoint(op, cfg.Dispatcher, 0); err != nil {
		return nil, err
	}
	if err := alive(op, e); err != nil {
		return nil, err
	}
	if e.adapter != a {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint belongs to another adapter"}
	}
	if err := e.ctl.change(op, inReserve); err != nil {
		return nil, err
	}
	r := &RSP{endpoint: e}
	r.point = point{adapter: a, self: r, to: cfg.Dispatcher, prepare: r.prepare, announce: r.announce, release: r.release}
	if err := r.point.start(op, cfg.Addr, cfg.Qual); err != nil {
		_ = e.ctl.change(op, inRelease) // it fails only if the provider failed meanwhile: no other call moves a RESERVED endpoint
		return nil, err
	}
	return r, nil
}

// prepare gives the reserved endpoint to the first request, and to no other.
func (r *RSP) prepare(cr *CR) error {
	if !r.used.CompareAndSwap(false, true) {
		return errPointClosed
	}
	cr.own = r.endpoint
	return nil
}

// announce gives the request to the endpoint, whose step announces it.
func (r *RSP) announce(cr *CR) {
	r.endpoint.facts.reservedRequest = cr
	r.endpoint.box.tell(tellAsked)
}

// release frees the endpoint from the reservation if no request has come, since
// none can come now.
func (r *RSP) release() {
	if r.used.CompareAndSwap(false, true) {
		_ = r.endpoint.ctl.change("ep.RSP.Close", inRelease) // it fails if the provider failed meanwhile
	}
}

// Qual returns the connection qualifier that the service point listens on.
func (r *RSP) Qual() uint64 { return r.at().qual() }

// at returns the point in the handle; nil for a nil handle.
func (r *RSP) at() *point {
	if r == nil {
		return nil
	}
	return &r.point
}

// RSPField selects the fields that RSP.Query fills: DAT_RSP_PARAM_MASK, with its
// numbers.
type RSPField uint32

// The fields of RSPParam.
const (
	RSPFieldIA       RSPField = 0x1 // IA
	RSPFieldQual     RSPField = 0x2 // Qual
	RSPFieldEVD      RSPField = 0x4 // Dispatcher
	RSPFieldEndpoint RSPField = 0x8 // Endpoint
	RSPFieldAll      RSPField = 0xF
)

// RSPParam describes a reserved service point: DAT_RSP_PARAM. What was not asked
// for is zero.
type RSPParam struct {
	IA         any // the interface adapter, a *runtime.IA
	Qual       uint64
	Dispatcher *evd.Dispatcher
	Endpoint   *Endpoint
}

// Query returns the fields that mask selects. It answers to dat_rsp_query.
func (r *RSP) Query(mask RSPField) (q RSPParam, err error) {
	if err := r.at().query(kindRSP, uint32(mask), uint32(RSPFieldAll)); err != nil {
		return q, err
	}
	fill(mask&RSPFieldIA, &q.IA, r.point.adapter.ia)
	fill(mask&RSPFieldQual, &q.Qual, r.Qual())
	fill(mask&RSPFieldEVD, &q.Dispatcher, r.point.to)
	fill(mask&RSPFieldEndpoint, &q.Endpoint, r.endpoint)
	return q, nil
}

// Close stops listening, as [PSP.Close] does. If no request has come the endpoint
// is UNCONNECTED again; a request that came stays valid.
// It answers to dat_rsp_free.
func (r *RSP) Close() error {
	return r.at().close(kindRSP)
}
