package ep

import (
	"cmp"

	"godat/evd"
	"godat/hw"
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

// ownEVD refuses a dispatcher of another adapter. sub says what it is for.
func (a *base) ownEVD(op string, d *evd.Dispatcher, sub hw.Subtype) error {
	if d == nil || wiring(d).Serves(a.cfg.IA) {
		return nil
	}
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: sub, Text: "the dispatcher is another adapter's: NewDispatcher of this one makes some for it"}
}

// ownParts refuses parts of another adapter.

// checkForeign refuses parts that are another adapter's.
func (p *parts) checkForeign(a *base) error {
	return cmp.Or(a.ownPZ("", p.pz), a.ownEVD("", p.recv, hw.HandleEVDRecv),
		a.ownEVD("", p.request, hw.HandleEVDRequest), a.ownEVD("", p.conn, hw.HandleEVDConn))
}
