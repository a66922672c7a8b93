package hw

// Runner is a [QP] that also takes plain requests in runs, for a fraction of what an array of
// them costs. A plain request has one segment, which is not empty. PostRun and RecvRun count as
// calls of PostSend and PostRecv, and keep their order. They return how many requests they
// have taken. If that is fewer than n, the queue pair can't take the next one this way: the
// owner posts that in an array, and learns what is wrong with it, if anything is.
type Runner interface {
	QP
	// PostRun posts up to n requests of an operation: OpSend, OpWrite or OpRead. The first has
	// that id and segment; the ids of the others follow it, and their segments lie stride
	// bytes apart in one array. flags has WRSignaled, WRSolicited and WRFence; rkey and addr
	// name the peer's memory, for OpWrite and OpRead. A segment stays unchanged until PostRun
	// returns or the request has completed, whichever comes first.
	//
	// With WRMore the run goes on: the owner's next call is PostRun or RecvRun. The run ends
	// with the call of PostRun that has no WRMore, or takes fewer than n requests. Requests may
	// wait until then, and so may completions: they have WCMore, and the end of the run ends
	// their series; see [SeriesSink].
	PostRun(op Op, flags WRFlags, id uint64, sge *SGE, stride uintptr, n int, rkey uint32, addr uint64) int
	// RecvRun posts up to n receives, whose ids and segments lie as those of PostRun. The
	// segments stay unchanged until the receives have completed. A send that waits for one of
	// them may go on waiting until Kick is called. Between the two calls the owner executes
	// a swap, compare-and-swap or addition of sync/atomic, which orders them; so RecvRun needs
	// none.
	RecvRun(id uint64, sge *SGE, stride uintptr, n int) int
	// Kick executes the sends that wait for the receives of earlier calls of RecvRun.
	// Unlike the other methods, any goroutine may call it at any time, also while the
	// owner makes a call, and after Close.
	Kick()
}

// SeriesSink is a [Sink] that also takes plain successes one at a time. Its calls count
// as calls of Complete, and keep their order.
//
// Completions with WCMore are a series. The sink may keep them to itself until the series
// ends: with the next call of CompleteOne without WCMore, of Complete or of Flush. Each side
// has one duty. The caller ends each series before it waits for anything, and before it leaves
// completing to another goroutine; another request may never come. In the call that ends a
// series the sink hands on all that it has kept, before what the call brings, and wakes every
// consumer to whom it has handed something: whatever the completions are, and wherever they go.
type SeriesSink interface {
	Sink
	// CompleteOne is Complete of a success of OpSend, OpWrite, OpRead or OpRecv, whose
	// flags have WCSolicited and WCMore at most.
	CompleteOne(id uint64, op Op, n uint32, flags WCFlags)
	// Flush ends a series, if there is one.
	Flush()
}
