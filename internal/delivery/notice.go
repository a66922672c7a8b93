package delivery

import "sync/atomic"

// notice says whether an event that notifies was put since the consumer looked. A
// silent event does not notify.
type notice struct{ word atomic.Bool }

// mark notes an event that was put, for Flush to see.
func (n *notice) mark(silent bool) {
	if !silent && !n.word.Load() {
		n.word.Store(true)
	}
}

// due reports whether an event that notifies was put.
func (n *notice) due() bool { return n.word.Load() }

// set notifies, whatever was put.
func (n *notice) set() { n.word.Store(true) }

// clear makes the notice quiet: the consumer is about to look.
func (n *notice) clear() { n.word.Store(false) }

// take clears the notice if it is due. Of several callers, one takes it.
func (n *notice) take() bool { return n.word.CompareAndSwap(true, false) }
