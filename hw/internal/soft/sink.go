package soft

import "godat/hw"

// SeriesSink returns the sink, if it takes series, and else a sink that passes on to it
// arrays of one.
func SeriesSink(sink hw.Sink) hw.SeriesSink {
	if series, ok := sink.(hw.SeriesSink); ok {
		return series
	}
	return &arrays{Sink: sink}
}

// arrays makes a sink that takes series of one that takes arrays only.
type arrays struct {
	hw.Sink
	one [1]hw.WC
}

// CompleteOne implements [hw.SeriesSink]. Like Complete, one goroutine at a time calls it.
func (a *arrays) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	a.one[0] = hw.WC{ID: id, Len: n, Op: op, Flags: flags &^ hw.WCMore}
	a.Complete(a.one[:])
}

// Flush implements [hw.SeriesSink].
func (a *arrays) Flush() {}
