package ep

import (
	"net"

	"godat/evd"
	"godat/internal/door"
	"godat/mem"
)

// Param describes an endpoint: DAT_EP_PARAM.
//
// LocalAddr is the connection's while it is known; in every other state it is the adapter's
// address, without a port. RemoteAddr and both qualifiers are zero in the states in which they have
// no meaning. During an attempt to connect the remote address is the one that Connect was given, and
// the local qualifier is not known yet.
type Param struct {
	State                 State
	Comm                  Comm
	LocalAddr, RemoteAddr net.Addr
	LocalQual, RemoteQual uint64
	PZ                    *mem.PZ
	Recv, Request, Conn   *evd.Dispatcher
	SRQ                   *SRQ
	Attr                  Attr // what was given; see Attr
}

// Query describes the endpoint. It answers to dat_ep_query.
func (e *Endpoint) Query() (Param, error) {
	if err := alive("ep.Query", e); err != nil {
		return Param{}, err
	}
	p, requests := &e.profile, e.box.Requests.Rules()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := e.State()
	q := Param{
		State: s, PZ: requests.PZ, Recv: e.box.Recvs.Rules().EVD, Request: requests.EVD, Conn: p.conn, SRQ: e.srq,
		Attr: p.attr,
	}
	if own := e.adapter.attr.Address; own != "" {
		q.LocalAddr = ownAddr{e.adapter.attr.Provider, own}
	}
	if 1<<s&localValid != 0 && p.local.addr != nil {
		q.LocalAddr, q.LocalQual = p.local.addr, p.local.qual
	}
	if 1<<s&remoteValid != 0 {
		q.RemoteAddr, q.RemoteQual = p.remote.addr, p.remote.qual
	}
	return q, nil
}

// Home returns the adapter. Package runtime calls it.
func (e *Endpoint) Home(door.Key) (ia any, err error) {
	if err := alive("runtime.IAOf", e); err != nil {
		return nil, err
	}
	return e.adapter.cfg.IA, nil
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
