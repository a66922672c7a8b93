package hw

// Direct is a [QP] that also takes plain requests one at a time, for a fraction of what
// an array of one costs. A plain request has one segment, which is not empty. PostOne
// and RecvOne count as calls of PostSend and PostRecv, and keep their order. They return
// false, and have done nothing, if the queue pair can't take the request this way: the
// owner then posts it in an array, and learns what is wrong with it, if anything is.
type Direct interface {
	QP
	// PostOne posts an OpSend, OpWrite or OpRead. It executes the request before it
	// returns. flags has WRSignaled, WRSolicited and WRFence; rkey and addr name the
	// peer's memory, for OpWrite and OpRead. sge stays unchanged until the request has
	// completed, and no longer. What another goroutine asks of the queue pair meanwhile may
	// wait until LookAgain is called. Between the two calls the owner executes a swap,
	// compare-and-swap or addition of sync/atomic, which orders them; so PostOne ends
	// without one.
	PostOne(op Op, flags WRFlags, id uint64, sge *SGE, rkey uint32, addr uint64) bool
	// LookAgain executes what other goroutines have asked for during a call of PostOne that
	// returned true. Any goroutine may call it at any time, as Kick.
	LookAgain()
	// BeginRun begins a run of requests: calls of RunOne, which are PostOne at a lower
	// price, and then EndRun. Between them the owner makes no other call but RecvOne.
	// BeginRun returns false, and begins nothing, if the queue pair can't take a request
	// now.
	BeginRun() bool
	// RunOne is PostOne within a run. When it returns false, the owner ends the run and
	// posts what is left in another way.
	RunOne(op Op, flags WRFlags, id uint64, sge *SGE, rkey uint32, addr uint64) bool
	// EndRun ends a run. Completions of its requests may be held back until then: they
	// have WCMore.
	EndRun()
	// RecvOne posts a receive. sge stays unchanged until the receive has completed. A
	// send that waits for the receive may go on waiting until Kick is called. Between
	// the two calls the owner executes a swap, compare-and-swap or addition of
	// sync/atomic, which orders them; so RecvOne needs none.
	RecvOne(id uint64, sge *SGE) bool
	// Kick executes the sends that wait for the receives of earlier calls of RecvOne.
	// Unlike the other methods, any goroutine may call it at any time, also while the
	// owner makes a call, and after Close.
	Kick()
}

// DirectSink is a [Sink] that also takes plain successes one at a time. Its calls count
// as calls of Complete, and keep their order.
type DirectSink interface {
	Sink
	// CompleteOne is Complete of a success of OpSend, OpWrite, OpRead or OpRecv, whose
	// flags have WCSolicited and WCMore at most.
	CompleteOne(id uint64, op Op, n uint32, flags WCFlags)
	// Flush ends a series of calls of CompleteOne that had WCMore.
	Flush()
}
