package delivery

import "sync/atomic"

// notice says whether an event that notifies was put since the consumer looked.
type notice struct{ word atomic.Uint32 }

// The values of a notice. A silent event must not wake the waiter, unless it fills
// the gap in front of an event that should have: a producer first claims a place
// and then publishes the event, so a later event may be published first. A waiter
// that finds a gap before it sleeps sets gapped, and then silent events notify as
// well.
const (
	quiet  = 0 // nothing that notifies was put since the waiter looked
	gapped = 1 // the same, and the next event of any kind notifies
	due    = 2
)

// mark notes an event that was put, for Flush to see.
func (n *notice) mark(silent bool) {
	s := n.word.Load()
	if s != due && (!silent || s == gapped) {
		n.word.Store(due)
	}
}

// due reports whether an event that notifies was put.
func (n *notice) due() bool { return n.word.Load() == due }

// set notifies, whatever was put.
func (n *notice) set() { n.word.Store(due) }

// clear makes the notice quiet: the consumer is about to look.
func (n *notice) clear() { n.word.Store(quiet) }

// take clears the notice if it is due. Of several callers, one takes it.
func (n *notice) take() bool { return n.word.CompareAndSwap(due, quiet) }

// gap makes the next event of any kind notify.
func (n *notice) gap() { n.word.CompareAndSwap(quiet, gapped) }
