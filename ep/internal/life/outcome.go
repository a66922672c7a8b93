package life

import (
	"godat/hw"
	"godat/hw/event"
)

// Ended is the input that a reason for the end of a connection is.
func Ended(why hw.Reason) Input {
	if why == hw.ReasonDrained {
		return InDrained
	}
	return InDown
}

// outcome says how a connection, or the attempt at one, ends by an input, and why, for want of what the provider says.
func outcome(s State, in Input, d Detail) (how event.Number, why *hw.Cause) {
	switch in {
	case InRefused:
		return refused(s, d.Why), &hw.Cause{Text: "the device gave no reason"}
	case InDown:
		return down(s, d.Why), &hw.Cause{Text: "the peer disconnected", Found: hw.SidePeer}
	case InDrained:
		return event.Disconnected, &hw.Cause{Text: "a graceful Disconnect has completed"}
	case InTimeout:
		if s == ActiveConnectionPending {
			return event.TimedOut, &hw.Cause{Text: "the peer did not answer in the time of the connect call: its program has not accepted the request", Err: hw.ErrTimeout}
		}
		return event.Disconnected, &hw.Cause{Text: "the requests did not complete in ep.Attr.DrainTimeout", Err: hw.ErrTimeout}
	case InFailure:
		return event.Broken, &hw.Cause{Text: "the device refused a request", Err: d.Err}
	case InOverrun:
		return event.Broken, &hw.Cause{Text: "the hard high watermark of receives is exceeded"}
	default: // the program disconnects
		return event.Disconnected, &hw.Cause{Text: "Disconnect was called"}
	}
}

// refused says how an attempt failed.
func refused(s State, why hw.Reason) event.Number {
	if s == CompletionPending {
		return event.AcceptCompletionError
	}
	switch why {
	case hw.ReasonPeerRejected:
		return event.PeerRejected
	case hw.ReasonUnreachable:
		return event.Unreachable
	case hw.ReasonTimeout:
		return event.TimedOut
	default:
		return event.NonPeerRejected
	}
}

// down says how a connection ended.
func down(s State, why hw.Reason) event.Number {
	switch {
	case s == CompletionPending:
		return event.AcceptCompletionError
	case why == hw.ReasonPeer:
		return event.Disconnected
	default:
		return event.Broken
	}
}
