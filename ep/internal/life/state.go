package life

import (
	"strconv"

	"godat/hw"
)

// State is an endpoint's state: DAT_EP_STATE, with its numbers. The numbers that are missing are of states that no
// endpoint enters.
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
	Closed                     State = 15 // no DAT state: the handle is gone
	numStates                  State = 16
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

// Subtype is the INVALID_STATE subtype that names the state.
func (s State) Subtype() hw.Subtype { return subtypes[s] }

// advice says what leads out of a state in which a call is refused.
var advice = [numStates]string{
	Unconnected:             "Connect or CommonConnect connects it, and so does the accept of a request with it",
	ActiveConnectionPending: "wait for ESTABLISHED",
	CompletionPending:       "wait for ESTABLISHED",
	Connected:               "Disconnect ends the connection, and behind DISCONNECTED Reset lets it connect anew",
	DisconnectPending:       "wait for DISCONNECTED",
	Disconnected:            "the connection has ended; Reset lets it connect anew",
}

// Refusal is why a call is refused in the state: INVALID_STATE with the subtype of s, or INVALID_HANDLE for a closed
// endpoint.
func (s State) Refusal(call string) error {
	if s == Closed {
		return &hw.Error{Op: call, Type: hw.InvalidHandle, Sub: hw.HandleEP, Text: "the endpoint is closed; NewEndpoint makes another"}
	}
	return &hw.Error{Op: call, Type: hw.InvalidState, Sub: subtypes[s], Text: advice[s]}
}

// underWay reports whether there is a connection, or an attempt at one.
func (s State) underWay() bool {
	const states = 1<<ActiveConnectionPending | 1<<CompletionPending | 1<<Connected | 1<<DisconnectPending
	return 1<<s&states != 0
}
