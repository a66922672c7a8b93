package ep

import (
	"godat/ep/internal/life"
	"godat/ep/internal/line"
)

// State is an endpoint's state: DAT_EP_STATE, with its numbers.
type State uint8

// The states.
const (
	Unconnected                State = 0
	Reserved                   State = 2 // it waits for the request of its reserved service point
	PassiveConnectionPending   State = 4 // the request of its reserved service point waits for an answer
	ActiveConnectionPending    State = 6 // connecting
	TentativeConnectionPending State = 7 // a service point made it for a request
	Connected                  State = 9
	DisconnectPending          State = 10 // a graceful disconnect is under way
	Disconnected               State = 11 // until Reset
	CompletionPending          State = 12 // accepted, and not connected yet
)

func (s State) String() string { return life.State(s).String() }

// phases say where the mailbox has posts go in each state that is entered.
var phases = [...]line.Phase{
	life.TentativeConnectionPending: line.Bare, // there may be no zone for segments
	life.Connected:                  line.Up,
	life.DisconnectPending:          line.Draining,
	life.Disconnected:               line.Over,
	life.Closed:                     line.Gone,
}

// inBox is the state as the mailbox has it.
func inBox(s life.State) line.State { return phases[s].In(uint8(s)) }

// stateIn is the state of the endpoint that a mailbox belongs to.
func stateIn(box *line.Mailbox) life.State { return life.State(box.State().Number()) }
