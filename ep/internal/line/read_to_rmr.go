package line

import (
	"godat/hw"
	"godat/mem"
)

// PostReadToRMR posts a read into memory that is named as a peer would name it.
func (b *Mailbox) PostReadToRMR(cookie uint64, flags hw.Flags, local, remote mem.RemoteSegment) error {
	q := &b.Requests
	w := work{op: hw.OpReadToRMR, flags: flags, cookie: cookie, remote: remote}
	r := q.rules.Load()
	if _, err := b.check(r, &w); err != nil {
		return err
	}
	if r.ReadIOV == 0 {
		return hw.Errorf(CallOf(w.op), hw.InvalidParameter, hw.NoSubtype, "the endpoint allows reads no segment (MaxReadIOV)")
	}
	if err := r.checkRDMA(&w, uint64(local.Len)); err != nil {
		return err
	}
	ticket, mine, err := b.admit(q, &w, nil)
	if err != nil {
		return err
	}
	s := q.slot(ticket)
	s.nseg, s.addr, s.rkey = 1, w.remote.Addr, w.remote.Context
	s.sge[0] = hw.SGE{Addr: local.Addr, Len: w.remote.Len, LKey: local.Context}
	b.submit(q, ticket, 1, mine)
	return nil
}
