package hw

// Reason says why a connection, or the attempt at one, ended.
type Reason uint8

// The reasons. Facts.Refused reports those up to ReasonTimeout, Facts.Down the
// others.
const (
	ReasonNone         Reason = iota
	ReasonPeerRejected        // the remote consumer rejected the request
	ReasonRejected            // no listener, no room, or the remote provider refused
	ReasonUnreachable         // the address can't be resolved or reached
	ReasonTimeout             // the attempt took too long
	ReasonDrained             // Drain has finished
	ReasonPeer                // the peer ended the connection in order
	ReasonBroken              // an operation failed, the transport broke or the peer was lost
)

var reasonText = [...]string{
	"none", "rejected by the peer", "rejected", "unreachable", "timed out",
	"drained", "ended by the peer", "broken",
}

func (r Reason) String() string { return text(reasonText[:], int(r), "Reason") }
