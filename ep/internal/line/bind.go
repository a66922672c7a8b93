package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// PostBind posts a bind of a window of the zone's, or of one that windows owns, and returns the name that
// it gives. ep.Endpoint.PostBind says more.
func (b *Mailbox) PostBind(windows *memory.Owner, cookie uint64, flags hw.Flags, rmr *mem.RMR, to mem.Binding) (mem.RemoteSegment, error) {
	const op = "ep.PostBind"
	q := &b.Requests
	w := work{op: hw.OpBind, flags: flags, cookie: cookie}
	r := q.rules.Load()
	if _, err := b.check(r, &w); err != nil {
		return mem.RemoteSegment{}, err
	}
	if r.Queues != nil && !r.Queues.Takes(event.StreamBind) {
		return mem.RemoteSegment{}, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPEVDRequest, Text: "the dispatcher does not take binds"}
	}
	p, err := prepareBind(r, windows, rmr, to)
	if err != nil {
		return mem.RemoteSegment{}, Wrap(op, err)
	}
	ticket, mine, err := b.admit(q, &w, nil)
	if err != nil {
		rmr.Window(door.Key{}).CancelBind(p.Key)
		return mem.RemoteSegment{}, err
	}
	*q.bind(ticket) = p
	b.submit(q, ticket, 1, mine)
	return mem.RemoteSegment(p.to.Remote(p.Key)), nil
}

// prepareBind has the window choose its next name.
func prepareBind(r *Rules, windows *memory.Owner, rmr *mem.RMR, to mem.Binding) (p pendingBind, err error) {
	p.rmr = rmr
	p.to = memory.Binding{Segment: memory.Segment(to.Segment), Privileges: to.Privileges, ZeroBased: to.ZeroBased}
	p.Bind, err = rmr.Window(door.Key{}).BeginBind(r.Zone, windows, &p.to)
	return p, err
}

// bind is where the bind of a ticket is kept.
func (q *Queue) bind(ticket uint32) *pendingBind {
	return &q.binds.made(len(q.slots))[ticket&q.mask]
}
