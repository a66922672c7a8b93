package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Every call that takes an object checks that the object belongs to the same
// adapter: an object that named one of another adapter would tie two devices
// together that know nothing of each other.

// ownPZ refuses a zone of another adapter.
func (a *Adapter) ownPZ(op string, pz *mem.PZ) error {
	if pz == nil || a.cfg.Domain == nil || a.cfg.Domain.Has(pz) {
		return nil
	}
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "the zone is another adapter's"}
}

// ownEVD refuses a dispatcher of another adapter. sub says what the dispatcher is
// for.
func (a *Adapter) ownEVD(op string, d *evd.Dispatcher, sub hw.Subtype) error {
	if d == nil || wiring(d).Serves(a.cfg.IA) {
		return nil
	}
	return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: sub, Text: "the dispatcher is another adapter's"}
}

// ownParts refuses parts of another adapter.
func (a *Adapter) ownParts(p *parts) error {
	if err := a.ownPZ("", p.pz); err != nil {
		return err
	}
	for _, use := range [...]struct {
		d   *evd.Dispatcher
		sub hw.Subtype
	}{{p.recv, hw.HandleEVDRecv}, {p.request, hw.HandleEVDRequest}, {p.conn, hw.HandleEVDConn}} {
		if err := a.ownEVD("", use.d, use.sub); err != nil {
			return err
		}
	}
	return nil
}
