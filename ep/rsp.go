package ep

import (
	"cmp"

	"godat/ep/internal/life"
	"godat/evd"
	"godat/hw"
	"godat/internal/door"
)

// RSP is a reserved service point: it listens for one connection request, for one
// endpoint. Its methods may be called from any goroutine. It answers to
// DAT_RSP_HANDLE.
//
// [godat/runtime.IA.NewRSP] makes one; Close releases the endpoint if no request has come.
type RSP point

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
	if err := cmp.Or(a.checkPoint(op, cfg.Dispatcher, 0), alive(op, e)); err != nil {
		return nil, err
	}
	if e.adapter != &a.endpointRegistry {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint belongs to another adapter"}
	}
	if err := e.ctl.change(op, life.InReserve); err != nil {
		return nil, err
	}
	r := &RSP{adapter: &a.pointRegistry, to: cfg.Dispatcher, reserved: e}
	if err := r.point().start(op, r, cfg.Addr, cfg.Qual); err != nil {
		_ = e.ctl.change(op, life.InRelease) // it fails only if the provider failed meanwhile: no other call moves a RESERVED endpoint
		return nil, err
	}
	return r, nil
}

func (r *RSP) point() *point { return (*point)(r) }

// Qual returns the connection qualifier that the service point listens on.
func (r *RSP) Qual() uint64 { return r.point().qual() }

// Query says what the service point was made with, with the qualifier that it has. It answers to
// dat_rsp_query.
func (r *RSP) Query() (RSPConfig, error) {
	if err := r.point().query(kindRSP); err != nil {
		return RSPConfig{}, err
	}
	return RSPConfig{Addr: r.asked, Qual: r.Qual(), Endpoint: r.reserved, Dispatcher: r.to}, nil
}

// Home returns the adapter. Package runtime calls it.
func (r *RSP) Home(door.Key) (ia any, err error) { return r.point().home(kindRSP) }

// Close stops listening, as [PSP.Close] does. If no request has come the endpoint
// is UNCONNECTED again; a request that came stays valid.
// It answers to dat_rsp_free.
func (r *RSP) Close() error { return r.point().close(kindRSP) }
