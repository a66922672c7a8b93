package evd

import (
	"strings"

	"godat/internal/delivery"
)

// Mode says how a dispatcher delivers. It is fixed when the dispatcher is made.
type Mode uint8

// The modes.
const (
	// ModeQueue keeps events for Dequeue, Wait, Events and CNOs: DAT's own way.
	ModeQueue Mode = iota
	// ModeChannel sends each event on the channel C.
	ModeChannel
	// ModeBatch sends recycled batches of events on the channel Batches.
	ModeBatch
	// ModeCallback calls Config.Callback, one call at a time.
	ModeCallback
	// ModeFunc calls Config.Func, in the goroutine that completes the operation.
	ModeFunc
)

// ways has what delivers in each mode. A further way of delivery is a file of package delivery,
// and a line here; how its consumer gets the events is a method of Dispatcher, or a function
// of Config.
var ways = []*delivery.Way{
	ModeQueue:    delivery.Ring,
	ModeChannel:  delivery.Channel,
	ModeBatch:    delivery.Batches,
	ModeCallback: delivery.Callback,
	ModeFunc:     delivery.Func,
}

func (m Mode) String() string {
	if int(m) < len(ways) {
		return ways[m].Name
	}
	return "unknown"
}

// State is DAT_EVD_STATE: three sub-states, each a bit or a field of bits.
type State uint32

// The states. What notifies a waiter is a field of two bits: ConfigThreshold is a
// value of its own, and does not mean both of the others.
const (
	StateEnabled    State = 0x01 // arrivals trigger the CNO
	StateDisabled   State = 0x02
	StateWaitable   State = 0x04
	StateUnwaitable State = 0x08

	ConfigNotify    State = 0x10 // every event that is not UNSIGNALLED
	ConfigSolicited State = 0x20 // solicited receives and errors
	ConfigThreshold State = 0x30 // the waiter's threshold
	configMask            = ConfigThreshold
	configShift           = 4
)

// Config returns the field that says what notifies a waiter.
func (s State) Config() State { return s & configMask }

func (s State) String() string {
	var names []string
	for _, t := range []struct {
		s    State
		name string
	}{{StateEnabled, "ENABLED"}, {StateDisabled, "DISABLED"}, {StateWaitable, "WAITABLE"}, {StateUnwaitable, "UNWAITABLE"}} {
		if s&t.s != 0 {
			names = append(names, t.name)
		}
	}
	switch s.Config() { //nolint:exhaustive // the others are no configurations
	case ConfigNotify:
		names = append(names, "CONFIG_NOTIFY")
	case ConfigSolicited:
		names = append(names, "CONFIG_SOLICITED")
	case ConfigThreshold:
		names = append(names, "CONFIG_THRESHOLD")
	}
	return strings.Join(names, "|")
}
