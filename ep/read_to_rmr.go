package ep

import (
	"godat/hw"
	"godat/mem"
)

// PostRDMAReadToRMR is PostRDMARead into local memory that is named as a peer would
// name it: by the context that a window was bound under, or by a region's remote
// context. On transports that show the sink to the peer, such a read exposes no
// more memory than the window does. The memory needs RemoteWrite, and belongs to
// this endpoint's zone or to a window of its own.
//
// Whether local may be written is known only when the read is executed: if not, the
// read completes with LOCAL_PROTECTION and the connection breaks.
// It answers to dat_ep_post_rdma_read_to_rmr.
func (e *Endpoint) PostRDMAReadToRMR(cookie uint64, flags hw.Flags, local, remote mem.RemoteSegment) error {
	if e == nil {
		return nilEndpoint(hw.OpReadToRMR)
	}
	q := &e.box.requests
	w := work{op: hw.OpReadToRMR, flags: flags, cookie: cookie, remote: remote}
	for { // as in admitOne
		r := q.rules.Load()
		err := e.box.readToRMR(r, &w, local)
		if err == nil || q.rules.Load() == r {
			return err
		}
	}
}

// readToRMR is PostRDMAReadToRMR by one set of rules.
func (b *mailbox) readToRMR(r *rules, w *work, local mem.RemoteSegment) error {
	q := &b.requests
	if _, err := b.check(r, w); err != nil {
		return err
	}
	if r.iov == 0 {
		return hw.Errorf(callOf(w.op), hw.InvalidParameter, hw.NoSubtype, "the endpoint allows no segments")
	}
	if err := r.checkRDMA(w, uint64(local.Len)); err != nil {
		return err
	}
	ticket, mine, err := b.admit(q, r, w, nil, 0)
	if err != nil {
		return err
	}
	s := q.slot(ticket)
	s.nseg, s.addr, s.rkey = 1, w.remote.Addr, w.remote.Context
	s.sge[0] = hw.SGE{Addr: local.Addr, Len: w.remote.Len, LKey: local.Context}
	b.submit(q, ticket, 1, mine)
	return nil
}
