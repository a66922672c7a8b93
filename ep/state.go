package ep

import (
	"strconv"

	"godat/ep/internal/line"
	"godat/hw"
)

// State is an endpoint's state: DAT_EP_STATE, with its numbers.
type State uint8

// The states.
const (
	Unconnected                State = 0
	UnconfiguredUnconnected    State = 1 // never entered
	Reserved                   State = 2 // it waits for the request of its reserved service point
	UnconfiguredReserved       State = 3 // never entered
	PassiveConnectionPending   State = 4 // the request of its reserved service point waits for an answer
	UnconfiguredPassive        State = 5 // never entered
	ActiveConnectionPending    State = 6 // connecting
	TentativeConnectionPending State = 7 // a service point made it for a request
	UnconfiguredTentative      State = 8 // never entered
	Connected                  State = 9
	DisconnectPending          State = 10 // a graceful disconnect is under way
	Disconnected               State = 11 // until Reset
	CompletionPending          State = 12 // accepted, and not connected yet
	ConnectedSinglePath        State = 13 // never entered
	ConnectedMultiPath         State = 14 // never entered

	// closed is no DAT state: the handle is gone.
	closed    State = 15
	numStates State = 16
)

var stateText = [numStates]string{
	"UNCONNECTED", "UNCONFIGURED_UNCONNECTED", "RESERVED", "UNCONFIGURED_RESERVED",
	"PASSIVE_CONNECTION_PENDING", "UNCONFIGURED_PASSIVE", "ACTIVE_CONNECTION_PENDING",
	"TENTATIVE_CONNECTION_PENDING", "UNCONFIGURED_TENTATIVE", "CONNECTED", "DISCONNECT_PENDING",
	"DISCONNECTED", "COMPLETION_PENDING", "CONNECTED_SINGLE_PATH", "CONNECTED_MULTI_PATH", "closed",
}

func (s State) String() string {
	if int(s) < len(stateText) {
		return stateText[s]
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// subtypes are the INVALID_STATE subtypes that name each state.
var subtypes = [numStates]hw.Subtype{
	Unconnected:                hw.StateEPUnconnected,
	Reserved:                   hw.StateEPReserved,
	PassiveConnectionPending:   hw.StateEPPassiveConnectionPending,
	ActiveConnectionPending:    hw.StateEPActiveConnectionPending,
	TentativeConnectionPending: hw.StateEPTentativeConnectionPending,
	Connected:                  hw.StateEPConnected,
	DisconnectPending:          hw.StateEPDisconnectPending,
	Disconnected:               hw.StateEPDisconnected,
	CompletionPending:          hw.StateEPCompletionPending,
}

// advice says what leads out of a state in which a call is refused.
var advice = [numStates]string{
	Unconnected:             "Connect or CommonConnect connects it, and so does the accept of a request with it",
	ActiveConnectionPending: "wait for ESTABLISHED",
	CompletionPending:       "wait for ESTABLISHED",
	Connected:               "Disconnect ends the connection, and behind DISCONNECTED Reset lets it connect anew",
	DisconnectPending:       "wait for DISCONNECTED",
	Disconnected:            "the connection has ended; Reset lets it connect anew",
}

// input is something that may move an endpoint to another state.
type input uint8

const (
	inConnect     input = iota // the program connects
	inPair                     // the program connects by values that it has exchanged with the peer's
	inPairAddr                 // the program asks for this end's values
	inAccept                   // the program accepts a request with this endpoint
	inReserve                  // a reserved service point begins to listen for the endpoint
	inRelease                  // the reserved service point closes, and no request has come
	inAsked                    // a request has come for a reserved endpoint
	inAcceptOwn                // the program accepts the request that the endpoint came with
	inDisown                   // that request was rejected or handed off, or its accept failed
	inModify                   // the program modifies the endpoint: see mayModify
	inEstablished              // the provider: the connection is up
	inRefused                  // the provider: the attempt failed
	inDown                     // the provider: the connection is over
	inDrained                  // the provider: a graceful disconnect has drained
	inTimeout                  // the time for an attempt or a drain is up
	inAbrupt                   // the program disconnects
	inGraceful                 // the program disconnects when all requests are done
	inReset                    // the program makes the endpoint as new
	inFailure                  // the provider refused a post that it had to take
	inClose                    // the program frees the endpoint
	numInputs
)

// edge is what an input does in a state: refuse, ignore, or to(next).
type edge uint8

const (
	refuse edge = iota // INVALID_STATE; nothing happens
	ignore             // no effect, and no error
	firstEdge
)

func to(s State) edge { return firstEdge + edge(s) }

// transitions is the state machine. An edge that is not listed is refused.
var transitions = [numStates][numInputs]edge{
	Unconnected: {
		inConnect: to(ActiveConnectionPending), inPair: to(ActiveConnectionPending), inAccept: to(CompletionPending),
		inReserve: to(Reserved),
		inReset:   ignore, inFailure: to(Disconnected), inClose: to(closed),
	},
	Reserved: {
		inRelease: to(Unconnected), inAsked: to(PassiveConnectionPending),
		inFailure: to(Disconnected),
	},
	PassiveConnectionPending: {
		inAcceptOwn: to(CompletionPending), inDisown: to(Unconnected),
		inFailure: to(Disconnected),
	},
	TentativeConnectionPending: {
		inAcceptOwn: to(CompletionPending), inDisown: to(closed),
		inFailure: to(Disconnected),
	},
	ActiveConnectionPending: {
		inEstablished: to(Connected), inRefused: to(Disconnected), inDown: to(Disconnected),
		inTimeout: to(Disconnected), inAbrupt: to(Disconnected), inGraceful: to(Disconnected),
		inFailure: to(Disconnected), inClose: to(closed),
	},
	CompletionPending: {
		inEstablished: to(Connected), inRefused: to(Disconnected), inDown: to(Disconnected),
		inAbrupt: to(Disconnected), inGraceful: to(Disconnected),
		inFailure: to(Disconnected), inClose: to(closed),
	},
	Connected: {
		inDown: to(Disconnected), inRefused: to(Disconnected),
		inAbrupt: to(Disconnected), inGraceful: to(DisconnectPending),
		inFailure: to(Disconnected), inClose: to(closed),
	},
	DisconnectPending: {
		inDown: to(Disconnected), inDrained: to(Disconnected), inTimeout: to(Disconnected),
		inAbrupt: to(Disconnected), inGraceful: ignore,
		inFailure: to(Disconnected), inClose: to(closed),
	},
	Disconnected: {
		inAbrupt: ignore, inGraceful: ignore,
		inReset: to(Unconnected), inClose: to(closed),
	},
}

// phases say where the mailbox has posts go in each state that is entered.
var phases = [numStates]line.Phase{
	TentativeConnectionPending: line.Bare, // there may be no zone for segments
	Connected:                  line.Up,
	DisconnectPending:          line.Draining,
	Disconnected:               line.Over,
	closed:                     line.Gone,
}

// inBox is the state as the mailbox has it.
func (s State) inBox() line.State { return phases[s].In(uint8(s)) }

// stateIn is the state of the endpoint that a mailbox belongs to.
func stateIn(box *line.Mailbox) State { return State(box.State().Number()) }

// stateError returns INVALID_STATE with the subtype of s, or INVALID_HANDLE for a closed endpoint.
func stateError(op string, s State) error {
	if s == closed {
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is closed; NewEndpoint makes another"}
	}
	return &hw.Error{Op: op, Type: hw.InvalidState, Sub: subtypes[s], Text: advice[s]}
}
