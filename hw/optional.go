package hw

// Polled is a Device whose completions wait in queues until somebody polls.
//
// NewCQ and Wake may be called from any goroutine. A queue made while the poller
// waits is armed with the next Arm, so whoever makes one wakes the poller. Arm and
// Wait belong to one poller:
//
//	for {
//		while Poll returns something: hand it on
//		spin for a bounded while
//		Arm; Poll once more; if still nothing: Wait
//	}
//
// Poll may be called by others too. Their calls and the poller's Poll and Arm come
// one at a time, each after what the one before it returned was handed on. Wait alone
// may overlap them: another's Poll takes nothing back of what Arm asked for. But a
// Poll that returned something may leave more to do that ends no Wait: who made it
// polls until there is nothing, or wakes the poller.
type Polled interface {
	// NewCQ makes a completion queue of at least cfg.Depth entries.
	NewCQ(cfg CQConfig) (CQ, error)

	// Poll moves completions of all the device's queues into wcs, in order per
	// queue, and returns how many. Each carries its queue's tag. It visits every
	// queue fairly and crosses into the device once.
	Poll(wcs []WC) int

	// Arm asks for one wake-up at the next completion of any queue: for a queue
	// made solicited-only, at the next solicited or failed one. A completion that
	// came before Arm may give none, so the poller polls again before it waits.
	Arm() error

	// Wait blocks the calling thread until an armed queue got a completion, or
	// Wake was called since the last Wait returned.
	Wait() error

	// Wake ends Wait. Any goroutine may call it; it does not block.
	Wake()
}

// CQConfig configures a completion queue.
type CQConfig struct {
	Depth         int    // completions it must hold
	Tag           uint32 // echoed in WC.CQ
	SolicitedOnly bool   // wake only for solicited or failed completions; a poll takes them all
}

// CQ is a completion queue of a [Polled] device. Its owner sees to it that the
// queue pairs attached to it never have more requests outstanding than it holds.
type CQ interface {
	// Depth is how many completions it holds: at least what was asked for.
	Depth() int
	// Close frees the queue. No queue pair is attached to it any more. It may be
	// called while the poller is in Poll, Arm or Wait.
	Close() error
}

// SharedReceiver is a Device with shared receive queues.
type SharedReceiver interface {
	NewSRQ(cfg SRQConfig) (SRQ, error)
}

// SRQConfig configures a shared receive queue.
type SRQConfig struct {
	Zone            Zone
	Depth, Segments int
	// OnLow is called once after each Arm, when fewer receives than its limit
	// are left: at once if they are already. It records and returns.
	OnLow func()
}

// SRQ is a shared receive queue. PostRecv may be called from any goroutine;
// receives are taken in order and complete on the queue pair that took them.
type SRQ interface {
	PostRecv(wrs []RecvWR) (n int, err error)
	// Arm sets the low watermark; 0 disarms.
	Arm(limit int) error
	// Resize changes the depth; it fails when more are outstanding.
	Resize(depth int) error
	// Close fails with SRQ_IN_USE while a queue pair is attached.
	Close() error
}

// SRQCounter is an [SRQ] that can tell how many receives are left in it: posted,
// and taken by no queue pair. Any goroutine may ask.
type SRQCounter interface {
	Available() int
}

// Binder is a Device with memory windows.
type Binder interface {
	// NewWindow makes an unbound window. With qp set only that queue pair can
	// bind it and be reached through it (a type 2 window).
	NewWindow(zone Zone, qp QP) (Window, error)
}

// Window is a memory window (DAT's RMR).
type Window interface {
	// NextKey is the key that the next bind of the window will give: known
	// before the bind is posted, valid when it has completed. 0 says that there
	// is none left, and that the bind would fail. Any goroutine may ask.
	NextKey() uint32
	// Forget gives up the next key, for one whose bind never came to the device and
	// whose key may be known to peers. NextKey then goes on to another. To forget a
	// key that was bound, or forgotten, does nothing. Any goroutine may call it.
	Forget(key uint32)
	// Bound reports whether the window is bound still: a peer may have invalidated
	// it. A device that can't tell says true. Any goroutine may ask.
	Bound() bool
	// Close unbinds the window if it is bound. No bind is outstanding.
	Close() error
}

// Bind is the argument of OpBind. With Len 0 it unbinds.
type Bind struct {
	Window    Window
	MR        MR
	Addr      uint64
	Len       uint64
	Priv      Privileges
	Key       uint32 // what Window.NextKey said
	ZeroBased bool
}

// AsyncKind says what an AsyncEvent tells of.
type AsyncKind uint8

// The asynchronous events.
const (
	AsyncDeviceFatal AsyncKind = iota + 1
	AsyncPortDown
	AsyncQPError
	AsyncCQOverrun
	AsyncSRQError
	AsyncProviderError
)

// AsyncEvent is an error that belongs to no work request.
type AsyncEvent struct {
	Kind AsyncKind
	QP   QP  // AsyncQPError
	CQ   CQ  // AsyncCQOverrun
	SRQ  SRQ // AsyncSRQError
	Err  error
}
