package delivery

import (
	"sync"

	"godat/hw"
	"godat/hw/event"
)

// Feeds are the objects that feed a dispatcher, which is closed only when none is
// attached. They decide what notifies the dispatcher's waiter, and DAT wants them to
// agree: either all completion streams use UNSIGNALLED or none does, streams with
// SOLICITED_WAIT share a dispatcher with each other only, and neither kind shares
// one with other streams.
type Feeds struct {
	d  *Dispatcher // immutable
	mu sync.Mutex  // held by Dispatcher.Close and Abort, too
	feedCounts
}

// feedCounts counts feeds by what notifies the waiter.
type feedCounts struct {
	total   int
	byClass [4]int
}

// Feed says what an object feeds a dispatcher with: events of the streams, and
// for completions the flags of the endpoint's attribute.
type Feed struct {
	Streams event.Streams
	Flags   hw.Flags
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

// Feeds returns the objects that feed the dispatcher; nil on nil, where Attach and
// Replace fail.
func (d *Dispatcher) Feeds() *Feeds {
	if d == nil {
		return nil
	}
	return &d.feeds
}

// Attach counts an object that feeds the dispatcher. It fails with INVALID_PARAMETER
// when the dispatcher does not take one of the streams, and with INVALID_HANDLE when
// it is closed. Feeds that don't go together are INVALID_STATE, with the subtype that
// says what the dispatcher is configured for: EVD_CONFIG_NOTIFY, EVD_CONFIG_SOLICITED
// or EVD_CONFIG_THRESHOLD.
func (s *Feeds) Attach(f Feed) error {
	_, err := s.Replace(nil, []Feed{f})
	return err
}

// Detach undoes one Attach of the same Feed.
func (s *Feeds) Detach(f Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(f)
}

// Replace detaches the feeds in remove and attaches those in add, in one step. It
// fails as Attach does, and then changes nothing. undo attaches the old feeds again in
// place of the new ones, even if they do not go together with feeds that were attached
// since.
func (s *Feeds) Replace(remove, add []Feed) (undo func(), err error) {
	if s == nil {
		return nil, InvalidHandle("evd.Attach")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.feedCounts
	for _, f := range remove {
		s.remove(f)
	}
	for _, f := range add {
		if err := s.mayAdd(f); err != nil {
			s.feedCounts = was
			return nil, err
		}
		s.add(f)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range add {
			s.remove(f)
		}
		for _, f := range remove {
			s.add(f)
		}
	}, nil
}

// mayAdd returns why f can't be attached; nil if it can. The caller holds mu.
func (s *Feeds) mayAdd(f Feed) error {
	const op = "evd.Attach"
	takes := s.d.streams
	switch {
	case s.d.main.closed():
		return InvalidHandle(op)
	case f.Streams&^takes != 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "the dispatcher takes %v, not %v", takes, f.Streams&^takes)
	case s.byClass[classOf(f.Flags)] != s.total:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: s.subtype()}
	}
	return nil
}

// Config returns what notifies the waiter.
func (s *Feeds) Config() FeedConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config()
}

// mayThreshold returns nil if a waiter may ask for more than one event.
func (s *Feeds) mayThreshold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config() == NotifyThreshold {
		return nil
	}
	return &hw.Error{Op: "evd.Wait", Type: hw.InvalidState, Sub: s.subtype(), Text: "a threshold above 1"}
}

func (c *feedCounts) add(f Feed) {
	c.total++
	c.byClass[classOf(f.Flags)]++
}

func (c *feedCounts) remove(f Feed) {
	class := classOf(f.Flags)
	if c.byClass[class] == 0 {
		panic("evd: detached more often than attached")
	}
	c.total--
	c.byClass[class]--
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

func (c *feedCounts) config() FeedConfig {
	switch {
	case c.byClass[classSolicited]+c.byClass[classSolicited|classUnsignalled] != 0:
		return NotifySolicited
	case c.byClass[classUnsignalled] != 0:
		return NotifyUnlessUnsignalled
	}
	return NotifyThreshold
}

func (c *feedCounts) subtype() hw.Subtype {
	switch c.config() {
	case NotifySolicited:
		return hw.StateEVDConfigSolicited
	case NotifyUnlessUnsignalled:
		return hw.StateEVDConfigNotify
	default:
		return hw.StateEVDConfigThreshold
	}
}
