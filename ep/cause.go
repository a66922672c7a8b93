package ep

import (
	"sync/atomic"

	"godat/hw"
)

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
