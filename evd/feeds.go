package evd

import "godat/hw"

// feeds counts what is attached to a dispatcher. Dispatcher.mu guards it.
//
// What feeds a dispatcher decides what notifies its waiter, and DAT wants all
// feeds to agree: either all completion streams use UNSIGNALLED or none, those
// with SOLICITED_WAIT are among themselves, and neither shares a dispatcher with
// other kinds of streams.
type feeds struct {
	total   int
	byClass [4]int // by what notifies
}

// The classes of feeds.
const (
	classThreshold   = 0 // every event notifies
	classUnsignalled = 1 << (iota - 1)
	classSolicited
)

func classOf(f hw.Flags) (class int) {
	if f&hw.Unsignalled != 0 {
		class |= classUnsignalled
	}
	if f&hw.SolicitedWait != 0 {
		class |= classSolicited
	}
	return class
}

// Attach counts an object that feeds events of the given streams, all of which
// notify. It fails with INVALID_PARAMETER when the dispatcher does not take one
// of them, with INVALID_HANDLE when it is closed, and as AttachDTO does. While
// something is attached Close is refused.
func (d *Dispatcher) Attach(s Streams) error { return d.attach(s, classThreshold) }

// Detach takes one Attach back.
func (d *Dispatcher) Detach() { d.detach(classThreshold) }

// AttachDTO is Attach for one direction of an endpoint, with the completion
// flags of the endpoint's attribute. Feeds that don't go together are
// INVALID_STATE, with the subtype that says what the dispatcher is configured
// for: EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED or EVD_CONFIG_THRESHOLD.
func (d *Dispatcher) AttachDTO(flags hw.Flags) error { return d.attach(StreamDTO, classOf(flags)) }

// DetachDTO takes one AttachDTO with the same flags back.
func (d *Dispatcher) DetachDTO(flags hw.Flags) { d.detach(classOf(flags)) }

func (d *Dispatcher) attach(s Streams, class int) error {
	const op = "evd.Attach"
	if d == nil {
		return invalidHandle(op)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &d.feeds
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case s&^d.streams != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "the dispatcher takes %v, not %v", d.streams, s&^d.streams)
	case f.byClass[class] != f.total:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: f.subtype()}
	}
	f.total++
	f.byClass[class]++
	return nil
}

func (d *Dispatcher) detach(class int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &d.feeds
	if f.byClass[class] == 0 {
		panic("evd: detached more often than attached")
	}
	f.total--
	f.byClass[class]--
}

// config is what notifies the waiter.
func (f *feeds) config() State {
	switch {
	case f.byClass[classSolicited]+f.byClass[classSolicited|classUnsignalled] != 0:
		return ConfigSolicited
	case f.byClass[classUnsignalled] != 0:
		return ConfigNotify
	}
	return ConfigThreshold
}

func (f *feeds) subtype() hw.Subtype {
	switch f.config() {
	case ConfigSolicited:
		return hw.StateEVDConfigSolicited
	case ConfigNotify:
		return hw.StateEVDConfigNotify
	default:
		return hw.StateEVDConfigThreshold
	}
}

// mayThreshold says whether a waiter may ask for more than one event.
func (d *Dispatcher) mayThreshold() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.feeds.config() == ConfigThreshold {
		return nil
	}
	return &hw.Error{Op: "evd.Wait", Type: hw.InvalidState, Sub: d.feeds.subtype(), Text: "a threshold above 1"}
}
