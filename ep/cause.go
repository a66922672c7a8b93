package ep

import (
	"sync/atomic"

	"godat/hw"
)

// plainCause is the cause of an end for which the provider gave only a reason.
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

// endCause is why the connection ends. The provider or the machine writes it as soon as it
// knows; completers read it, since flushed completions carry it.
type endCause struct{ atomic.Pointer[hw.Cause] }

// blame makes c the cause unless there is one already; a nil cause changes nothing.
// Callers blame before the first post is flushed.
func (c *endCause) blame(cause *hw.Cause) {
	if cause != nil {
		c.CompareAndSwap(nil, cause)
	}
}

// CauseSnapshot is a cause in words.
type CauseSnapshot struct {
	Layer string // as [hw.Layer] names it
	Code  int    // see [hw.Cause]
	Text  string // all of it in one line
}

// describeCause is the cause in words; nil for none.
func describeCause(c *hw.Cause) *CauseSnapshot {
	if c == nil {
		return nil
	}
	return &CauseSnapshot{Layer: c.Layer.String(), Code: c.Code, Text: c.Error()}
}
