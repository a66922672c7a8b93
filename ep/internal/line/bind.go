package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// pendingBind is what a slot holds beside its fields when its operation is a bind.
type pendingBind struct {
	hw.Bind
	rmr *mem.RMR
	to  memory.Binding
}

// PostBind posts a bind of a window of the zone's, or of one that windows owns, and returns the name that
// it gives. ep.Endpoint.PostBind says more.
func (b *Mailbox) PostBind(windows *memory.Owner, cookie uint64, flags hw.Flags, rmr *mem.RMR, to mem.Binding) (mem.RemoteSegment, error) {
	w := work{op: hw.OpBind, flags: flags, cookie: cookie}
	for { // as in admitOne
		r := b.Requests.rules.Load()
		remote, err := b.bind(r, &w, windows, rmr, &to)
		if err == nil || b.Requests.rules.Load() == r {
			return remote, err
		}
	}
}

// bind is PostBind by one set of rules.
func (b *Mailbox) bind(r *Rules, w *work, windows *memory.Owner, rmr *mem.RMR, to *mem.Binding) (mem.RemoteSegment, error) {
	if _, err := b.check(r, w); err != nil {
		return mem.RemoteSegment{}, err
	}
	return b.admitBind(r, w, windows, rmr, to)
}

// admitBind is bind after the check.
func (b *Mailbox) admitBind(r *Rules, w *work, windows *memory.Owner, rmr *mem.RMR, to *mem.Binding) (mem.RemoteSegment, error) {
	const op = "ep.PostBind"
	q := &b.Requests
	if r.Queues != nil && !r.Queues.Takes(event.StreamBind) {
		return mem.RemoteSegment{}, &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEPEVDRequest, Text: "the dispatcher does not take binds"}
	}
	window := rmr.Window(door.Key{})
	binding := memory.Binding{Segment: memory.Segment(to.Segment), Privileges: to.Privileges, ZeroBased: to.ZeroBased}
	bind, err := window.BeginBind(r.Zone, windows, &binding)
	if err != nil {
		return mem.RemoteSegment{}, Wrap(op, err)
	}
	ticket, mine, err := b.admit(q, r, w, nil, 0)
	if err != nil {
		window.CancelBind(bind.Key)
		return mem.RemoteSegment{}, err
	}
	p := &q.binds.made(len(q.slots))[ticket&q.mask]
	p.Bind, p.rmr, p.to = bind, rmr, binding
	b.submit(q, ticket, 1, mine)
	return mem.RemoteSegment(binding.Remote(bind.Key)), nil
}

// end tells the window that its bind has completed.
func (p *pendingBind) end(status hw.Status) {
	p.rmr.Window(door.Key{}).EndBind(&p.to, p.Key, status == hw.StatusSuccess)
}
