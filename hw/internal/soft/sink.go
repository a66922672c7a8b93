package soft

import "godat/hw"

// DirectSink returns the sink, if it is direct, and else a direct sink that passes on to
// it arrays of one.
func DirectSink(sink hw.Sink) hw.DirectSink {
	if direct, ok := sink.(hw.DirectSink); ok {
		return direct
	}
	return &arrays{Sink: sink}
}

// arrays makes a direct sink of one that takes arrays only.
type arrays struct {
	hw.Sink
	one [1]hw.WC
}

// CompleteOne implements [hw.DirectSink]. Like Complete, one goroutine at a time calls it.
func (a *arrays) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	a.one[0] = hw.WC{ID: id, Len: n, Op: op, Flags: flags &^ hw.WCMore}
	a.Complete(a.one[:])
}

// Flush implements [hw.DirectSink].
func (a *arrays) Flush() {}
