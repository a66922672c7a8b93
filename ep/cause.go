package ep

import (
	"godat/evd"
	"godat/hw"
)

// plainCause is the cause of an end of which the provider said no more than its
// reason.
func plainCause(in input) *hw.Cause {
	switch in {
	case inAbrupt, inGraceful:
		return &hw.Cause{Text: "Disconnect was called"}
	case inDrained:
		return &hw.Cause{Text: "a graceful Disconnect has completed"}
	case inDown:
		return &hw.Cause{Text: "the peer disconnected", Found: hw.SidePeer}
	default:
		return &hw.Cause{Text: "the device gave no reason"}
	}
}

// blame says why the connection ends, before the first of its posts is flushed: a
// flush carries it, too.
func (e *Endpoint) blame(cause *hw.Cause) {
	if cause != nil {
		e.cause.CompareAndSwap(nil, cause)
	}
}

// explain lets a flush say why.
func (e *Endpoint) explain(ev *evd.Event) {
	if cause := e.cause.Load(); cause != nil && ev.Data == nil {
		ev.Data = cause
	}
}
