package delivery

import (
	"godat/hw"
	"godat/hw/event"
)

// feeds counts the objects that are attached to a dispatcher. Dispatcher.mu guards
// it.
//
// A dispatcher's feeds decide what notifies its waiter, and DAT wants them to
// agree: either all completion streams use UNSIGNALLED or none does, streams with
// SOLICITED_WAIT share a dispatcher with each other only, and neither kind shares
// one with other streams.
type feeds struct {
	total   int
	byClass [4]int // by what notifies the waiter
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
// notify. It fails with INVALID_PARAMETER when the dispatcher does not take one of
// the streams, with INVALID_HANDLE when it is closed, and as AttachDTO does. Close
// is refused while an object is attached.
func (d *Dispatcher) Attach(s event.Streams) error { return d.attach(Feed{Streams: s}) }

// Detach undoes one Attach.
func (d *Dispatcher) Detach() { d.detach(Feed{}) }

// AttachDTO is Attach for one direction of an endpoint, with the completion
// flags of the endpoint's attribute. Feeds that don't go together are
// INVALID_STATE, with the subtype that says what the dispatcher is configured
// for: EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED or EVD_CONFIG_THRESHOLD.
func (d *Dispatcher) AttachDTO(flags hw.Flags) error { return d.attach(Feed{event.StreamDTO, flags}) }

// DetachDTO undoes one AttachDTO with the same flags.
func (d *Dispatcher) DetachDTO(flags hw.Flags) { d.detach(Feed{event.StreamDTO, flags}) }

// Feed says what an object feeds a dispatcher with: events of the streams, and
// for completions the flags of the endpoint's attribute.
type Feed struct {
	Streams event.Streams
	Flags   hw.Flags
}

// Refeed detaches the feeds in remove and attaches those in add, in one step. It
// fails as AttachDTO does, and then changes nothing. undo attaches the old feeds
// again in place of the new ones, even if they do not go together with feeds that
// were attached since.
func (d *Dispatcher) Refeed(remove, add []Feed) (undo func(), err error) {
	if d == nil {
		return nil, invalidHandle("evd.Attach")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.feeds
	for _, f := range remove {
		d.feeds.remove(f)
	}
	for _, f := range add {
		if err := d.mayFeed(f); err != nil {
			d.feeds = was
			return nil, err
		}
		d.feeds.add(f)
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, f := range add {
			d.feeds.remove(f)
		}
		for _, f := range remove {
			d.feeds.add(f)
		}
	}, nil
}

func (d *Dispatcher) attach(f Feed) error {
	_, err := d.Refeed(nil, []Feed{f})
	return err
}

func (d *Dispatcher) detach(f Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.feeds.remove(f)
}

// mayFeed returns why f can't be attached; nil if it can. The caller holds mu.
func (d *Dispatcher) mayFeed(f Feed) error {
	const op = "evd.Attach"
	class := classOf(f.Flags)
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case f.Streams&^d.streams != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "the dispatcher takes %v, not %v", d.streams, f.Streams&^d.streams)
	case d.feeds.byClass[class] != d.feeds.total:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: d.feeds.subtype()}
	}
	return nil
}

func (f *feeds) add(feed Feed) {
	f.total++
	f.byClass[classOf(feed.Flags)]++
}

func (f *feeds) remove(feed Feed) {
	class := classOf(feed.Flags)
	if f.byClass[class] == 0 {
		panic("evd: detached more often than attached")
	}
	f.total--
	f.byClass[class]--
}

// FeedConfig says what notifies a dispatcher's waiter, which follows from the
// dispatcher's feeds. It has the numbers of the field of DAT_EVD_STATE.
type FeedConfig uint8

// The values of FeedConfig.
const (
	NotifyUnlessUnsignalled FeedConfig = 1
	NotifySolicited         FeedConfig = 2
	NotifyThreshold         FeedConfig = 3
)

// FeedConfig returns what notifies the waiter.
func (d *Dispatcher) FeedConfig() FeedConfig {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.feeds.config()
}

// Solicited reports whether only solicited events of the feeds notify the waiter.
func (d *Dispatcher) Solicited() bool { return d.FeedConfig() == NotifySolicited }

func (f *feeds) config() FeedConfig {
	switch {
	case f.byClass[classSolicited]+f.byClass[classSolicited|classUnsignalled] != 0:
		return NotifySolicited
	case f.byClass[classUnsignalled] != 0:
		return NotifyUnlessUnsignalled
	}
	return NotifyThreshold
}

func (f *feeds) subtype() hw.Subtype {
	switch f.config() {
	case NotifySolicited:
		return hw.StateEVDConfigSolicited
	case NotifyUnlessUnsignalled:
		return hw.StateEVDConfigNotify
	default:
		return hw.StateEVDConfigThreshold
	}
}

// mayThreshold returns nil if a waiter may ask for more than one event.
func (d *Dispatcher) mayThreshold() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.feeds.config() == NotifyThreshold {
		return nil
	}
	return &hw.Error{Op: "evd.Wait", Type: hw.InvalidState, Sub: d.feeds.subtype(), Text: "a threshold above 1"}
}
