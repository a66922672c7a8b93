package line

// Phase says where posts go.
type Phase uint8

// The phases.
const (
	Waiting  Phase = iota // for a connection: receives go to the provider
	Bare                  // as Waiting, while there may be no zone for segments
	Up                    // all go to the provider
	Draining              // requests were posted too late; receives go to the provider
	Over                  // all are flushed, once the queue has ended
	Gone                  // as Over, and the owner is closed
)

// State is the state of a mailbox's owner: its phase, and a number that the owner knows it by.
type State uint32

// In returns a state of the phase with a number.
func (p Phase) In(number uint8) State { return State(p) | State(number)<<8 }

// Phase is where posts go in the state.
func (s State) Phase() Phase { return Phase(s) }

// Number is the owner's.
func (s State) Number() uint8 { return uint8(s >> 8) }
