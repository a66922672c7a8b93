package life

// Input is something that may move an endpoint to another state.
type Input uint8

// The inputs.
const (
	InConnect     Input = iota // the program connects
	InPair                     // the program connects by values that it has exchanged with the peer's
	InPairAddr                 // the program asks for this end's values
	InAccept                   // the program accepts a request with this endpoint
	InReserve                  // a reserved service point begins to listen for the endpoint
	InRelease                  // the reserved service point closes, and no request has come
	InAsked                    // a request has come for a reserved endpoint
	InAcceptOwn                // the program accepts the request that the endpoint came with
	InDisown                   // that request was rejected or handed off, or its accept failed
	InModify                   // the program modifies the endpoint, in states that depend on what it modifies
	InEstablished              // the provider: the connection is up
	InFirstData                // the provider has data of the peer's, and has not said that the connection is up
	InRefused                  // the provider: the attempt failed
	InDown                     // the provider: the connection is over
	InDrained                  // the provider: a graceful disconnect has drained
	InTimeout                  // the time for an attempt or a drain is up
	InAbrupt                   // the program disconnects
	InGraceful                 // the program disconnects when all requests are done
	InReset                    // the program makes the endpoint as new
	InFailure                  // the provider refused a post that it had to take
	InOverrun                  // the endpoint has taken more receives than its hard watermark allows
	InClose                    // the program frees the endpoint
	NumInputs
)

var inputText = [NumInputs]string{
	InConnect: "Connect was called", InPair: "Pair was called", InPairAddr: "PairAddr was called", InAccept: "Accept was called",
	InReserve: "a reserved service point listens for it", InRelease: "its reserved service point was closed",
	InAsked: "a request came for it", InAcceptOwn: "Accept was called", InDisown: "its request was not accepted",
	InModify: "Modify was called", InEstablished: "connected", InFirstData: "connected, as data says",
	InRefused: "the attempt failed", InDown: "the connection is down", InDrained: "all requests are done", InTimeout: "the time was up",
	InAbrupt: "Disconnect was called", InGraceful: "a graceful Disconnect was called", InReset: "Reset was called",
	InFailure: "the device refused a request", InOverrun: "the hard high watermark of receives was exceeded", InClose: "Close was called",
}

// String says what happened.
func (in Input) String() string { return inputText[in] }

// edge is what an input does in a state: refuse, ignore, or to(next).
type edge uint8

const (
	refuse edge = iota // INVALID_STATE; nothing happens
	ignore             // no effect, and no error
	firstEdge
)

func to(s State) edge { return firstEdge + edge(s) }

// transitions is the state machine. An edge that is not listed is refused.
var transitions = [numStates][NumInputs]edge{
	Unconnected: {
		InConnect: to(ActiveConnectionPending), InPair: to(ActiveConnectionPending), InAccept: to(CompletionPending),
		InReserve: to(Reserved),
		InReset:   ignore, InFailure: to(Disconnected), InClose: to(Closed),
	},
	Reserved: {
		InRelease: to(Unconnected), InAsked: to(PassiveConnectionPending),
		InFailure: to(Disconnected), InOverrun: to(Disconnected),
	},
	PassiveConnectionPending: {
		InAcceptOwn: to(CompletionPending), InDisown: to(Unconnected),
		InFailure: to(Disconnected), InOverrun: to(Disconnected),
	},
	TentativeConnectionPending: {
		InAcceptOwn: to(CompletionPending), InDisown: to(Closed),
		InFailure: to(Disconnected), InOverrun: to(Disconnected),
	},
	ActiveConnectionPending: {
		InEstablished: to(Connected), InRefused: to(Disconnected), InDown: to(Disconnected),
		InTimeout: to(Disconnected), InAbrupt: to(Disconnected), InGraceful: to(Disconnected),
		InFailure: to(Disconnected), InOverrun: to(Disconnected), InClose: to(Closed),
	},
	CompletionPending: {
		InEstablished: to(Connected), InFirstData: to(Connected), InRefused: to(Disconnected), InDown: to(Disconnected),
		InAbrupt: to(Disconnected), InGraceful: to(Disconnected),
		InFailure: to(Disconnected), InOverrun: to(Disconnected), InClose: to(Closed),
	},
	Connected: {
		InDown: to(Disconnected), InRefused: to(Disconnected),
		InAbrupt: to(Disconnected), InGraceful: to(DisconnectPending),
		InFailure: to(Disconnected), InOverrun: to(Disconnected), InClose: to(Closed),
	},
	DisconnectPending: {
		InDown: to(Disconnected), InDrained: to(Disconnected), InTimeout: to(Disconnected),
		InAbrupt: to(Disconnected), InGraceful: ignore,
		InFailure: to(Disconnected), InOverrun: to(Disconnected), InClose: to(Closed),
	},
	Disconnected: {
		InAbrupt: ignore, InGraceful: ignore,
		InReset: to(Unconnected), InClose: to(Closed),
	},
}

// Moves reports whether the input leads to another state.
func (s State) Moves(in Input) bool { return transitions[s][in] >= firstEdge }
