package hw

// Direct is a [QP] that also takes plain requests one at a time, for a fraction of what
// an array of one costs. A plain request has one segment, which is not empty. PostOne
// and RecvOne count as calls of PostSend and PostRecv, and keep their order. They return
// false, and have done nothing, if the queue pair can't take the request this way: the
// owner then posts it in an array, and learns what is wrong with it, if anything is.
type Direct interface {
	QP
	// PostOne posts an OpSend, OpWrite or OpRead. flags has WRSignaled, WRSolicited and
	// WRFence; rkey and addr name the peer's memory, for OpWrite and OpRead. sge stays
	// unchanged until PostOne returns or the request has completed, whichever comes first.
	PostOne(op Op, flags WRFlags, id uint64, sge *SGE, rkey uint32, addr uint64) bool
	// BeginRun begins a run of requests: calls of RunOne, which are PostOne at a lower
	// price, and then EndRun. Between them the owner makes no other call but RecvOne.
	// BeginRun returns false, and begins nothing, if the queue pair can't take a request
	// now.
	BeginRun() bool
	// RunOne is PostOne within a run. When it returns false, the owner ends the run and
	// posts what is left in another way.
	RunOne(op Op, flags WRFlags, id uint64, sge *SGE, rkey uint32, addr uint64) bool
	// RunSends is RunOne of up to n sends with the same flags. The first has that id and
	// segment; the ids of the others follow it, and their segments lie stride bytes apart in
	// one array. RunSends returns how many it has taken.
	RunSends(flags WRFlags, id uint64, sge *SGE, stride uintptr, n int) int
	// EndRun ends a run. Requests may wait until then, and so may completions: they have
	// WCMore, and EndRun ends their series; see [DirectSink].
	EndRun()
	// RecvOne posts a receive. sge stays unchanged until the receive has completed. A
	// send that waits for the receive may go on waiting until Kick is called. Between
	// the two calls the owner executes a swap, compare-and-swap or addition of
	// sync/atomic, which orders them; so RecvOne needs none.
	RecvOne(id uint64, sge *SGE) bool
	// RecvRun is RecvOne of up to n receives, whose ids and segments lie as those of RunSends.
	// It returns how many it has posted.
	RecvRun(id uint64, sge *SGE, stride uintptr, n int) int
	// Kick executes the sends that wait for the receives of earlier calls of RecvOne.
	// Unlike the other methods, any goroutine may call it at any time, also while the
	// owner makes a call, and after Close.
	Kick()
}

// DirectSink is a [Sink] that also takes plain successes one at a time. Its calls count
// as calls of Complete, and keep their order.
//
// Completions with WCMore are a series. The sink may keep them to itself until the series
// ends: with the next call of CompleteOne without WCMore, of Complete or of Flush. Each side
// has one duty. The caller ends each series before it waits for anything, and before it leaves
// completing to another goroutine; another request may never come. In the call that ends a
// series the sink hands on all that it has kept, before what the call brings, and wakes every
// consumer to whom it has handed something: whatever the completions are, and wherever they go.
type DirectSink interface {
	Sink
	// CompleteOne is Complete of a success of OpSend, OpWrite, OpRead or OpRecv, whose
	// flags have WCSolicited and WCMore at most.
	CompleteOne(id uint64, op Op, n uint32, flags WCFlags)
	// Flush ends a series, if there is one.
	Flush()
}
