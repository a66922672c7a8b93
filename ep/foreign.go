package ep

import (
	"cmp"

	"godat/evd"
	"godat/hw"
	"godat/internal/door"
	"godat/mem"
)

// Every call that takes an object refuses one of another adapter: two devices that know nothing
// of each other would be tied together.

// ownPZ refuses a zone of another adapter.
func (a *base) ownPZ(op string, pz *mem.PZ) error {
	if pz == nil || a.cfg.Domain == nil || a.cfg.Domain.Has(pz) {
		return nil
	}
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "the zone is another adapter's: NewPZ of this one makes zones for it"}
}

// ownEVD refuses a dispatcher that is closed, or of another adapter. sub says what it is for.
func (a *base) ownEVD(op string, d *evd.Dispatcher, sub hw.Subtype) error {
	if d == nil {
		return nil
	}
	text := "the dispatcher is another adapter's: NewDispatcher of this one makes some for it"
	if _, err := d.Home(door.Key{}); err != nil {
		text = "the dispatcher is zero or closed; NewDispatcher makes one"
	} else if wiring(d).Serves(a.cfg.IA) {
		return nil
	}
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: sub, Text: text}
}

// checkForeign refuses parts that are another adapter's, and dispatchers that are closed.
func (p *parts) checkForeign(a *base) error {
	return cmp.Or(a.ownPZ("", p.pz), a.ownEVD("", p.recv, hw.HandleEVDRecv),
		a.ownEVD("", p.request, hw.HandleEVDRequest), a.ownEVD("", p.conn, hw.HandleEVDConn))
}
