package hw

import (
	"io"
	"time"
)

// Polled is a Device whose completions stay in completion queues until its user
// polls them.
//
// NewCQ and Wake may be called from any goroutine. A queue made while the poller
// waits is armed only by the next Arm, so the goroutine that made it wakes the
// poller. Arm and Wait belong to one goroutine, the poller:
//
//	for {
//		while Poll returns something: hand it on
//		spin for a bounded while
//		Arm; Poll once more; if still nothing: Wait
//	}
//
// Other goroutines may call Poll too. Their calls and the poller's Poll and Arm come
// one at a time, and each begins after the caller before it has handed on what it
// got. Wait alone may overlap them: a Poll by another goroutine revokes nothing that
// Arm asked for. But a Poll that returned something may leave completions that end no
// Wait: its caller polls until Poll returns nothing, or wakes the poller.
type Polled interface {
	// NewCQ makes a completion queue of at least cfg.Depth entries.
	NewCQ(cfg CQConfig) (CQ, error)

	// Poll moves completions of all the device's queues into wcs, in order per
	// queue, and returns their number. Each carries its queue's tag. Poll visits
	// the queues fairly and crosses into the device once.
	Poll(wcs []WC) int

	// Arm asks for one wake-up at the next completion of any queue; on a
	// solicited-only queue, at the next solicited or failed one. A completion that
	// came before Arm may cause no wake-up, so the poller polls again before it
	// waits.
	Arm() error

	// Wait blocks the calling thread until an armed queue has got a completion, or
	// Wake has been called since the last Wait returned.
	Wait() error

	// Wake ends Wait. Any goroutine may call it; it does not block.
	Wake()
}

// Sleeper is a Polled device that can be waited for without a thread. A thread that blocks in Wait
// keeps its processor from other goroutines until Go's scheduler takes it back, which takes
// 20 µs to 10 ms, and keeps the scheduler looking.
type Sleeper interface {
	// Sleep is Wait for a goroutine that is locked to no thread: it parks the goroutine alone, as
	// a Read of a connection does.
	Sleep() error
}

// CQConfig configures a completion queue.
type CQConfig struct {
	Depth         int    // completions it must hold
	Tag           uint32 // echoed in WC.CQ
	SolicitedOnly bool   // wake only for solicited or failed completions; a poll takes them all
}

// CQ is a completion queue of a [Polled] device. Its owner keeps the number of
// requests outstanding on the queue pairs attached to it within its depth.
type CQ interface {
	// Depth is the number of completions it holds: at least CQConfig.Depth.
	Depth() int
	// Close frees the queue, to which no queue pair may be attached any more. It
	// may be called while the poller is in Poll, Arm or Wait.
	Close() error
}

// Progresser is a Device that completes by itself and lets consumers do some of its
// work. A device over sockets is one: Go's scheduler looks at sockets when a processor
// has nothing to run, and a consumer that polls its queue leaves it no such moment.
type Progresser interface {
	// Progress does what the device can do at once. A consumer calls it each time that
	// it finds no event, and then looks for events again: Progress may have called sinks.
	// It never waits for a peer, and may let other goroutines run. Any goroutine may
	// call it at any time, even after Close, when it does nothing. No goroutine has to
	// call it.
	Progress()
}

// Watchable is a QP of a device that completes by itself. A goroutine that waits for the
// QP's messages can wait where they come in, and process them itself.
type Watchable interface {
	// Watcher returns where the messages of the QP's connection come in, also before there
	// is one; after a Reset it is another one. Any goroutine may call it, but not at the same time as
	// Reset or Close.
	Watcher() Watcher
}

// Watcher is where the messages of a connection come in. Any goroutine may call its methods.
type Watcher interface {
	// Watch waits until look reports true, or Disturb is called, or the connection needs
	// its own goroutine. It calls sinks. It returns false at once if the caller is to wait in
	// another way, for instance because another goroutine watches.
	//
	// Watch calls look from its own goroutine: with parks just before it sleeps, and
	// without as soon as it runs again. A goroutine that changes what look reports calls
	// Disturb, if the last call of look was with parks.
	Watch(look func(parks bool) bool) bool
	// Disturb ends a Watch that is under way. It does not block.
	Disturb()
	// Need is called with true before the caller sleeps until a sink wakes it, and before
	// it looks for the last time whether it must; and with false when it has slept.
	Need(sleeps bool)
}

// Marker is a QP that tells how far its send queue has come when its owner asks. Requests
// without WRSignaled succeed silently, so otherwise the owner learns of their success with a
// later request alone.
type Marker interface {
	// Mark has the send queue complete with that id, OpMark and StatusSuccess as soon as all
	// requests posted before the call have completed, behind their completions: at once if they
	// have. Later requests may complete before the mark. A mark takes no room in the queue, and the
	// peer sees nothing of it. Mark returns false, and does nothing, if the queue pair can't tell
	// now.
	//
	// The queue pair's owner calls it from Facts.Established on until Drain, Break or
	// Facts.Down, and not again before the mark has completed. If the connection ends before,
	// the mark may be dropped. On a [Polled] device it takes a place in the completion queue.
	Mark(id uint64) bool
}

// Tracer is a QP that can record what its connection carries.
type Tracer interface {
	// Trace records both directions of a connection that is up in the pcapng format, each from
	// its next packet or FPDU on, payloads included, until stop is called, the connection ends or
	// w fails; then it closes w. It writes to w where the connection's data comes and goes, so
	// a slow w makes the connection slow, and nothing else. stop returns the first error of w.
	//
	// Any goroutine may call Trace and stop, but Trace not at the same time as Connect, Reset or
	// Close. An error of Trace leaves w open: the queue pair is not connected, or has a trace.
	Trace(w io.WriteCloser) (stop func() error, err error)
}

// Flow is what a transport says of a connection: how many octets have come from the peer, and how many
// of this end's the peer's system has acknowledged, which only grow; and how many of this end's it has not.
type Flow struct {
	Came, Passed, Waiting uint64
	// Acknowledged says that the peer's system has acknowledged all that went out: it lives. Lost says that it
	// acknowledges nothing, though that was sent again and again: the network is cut, or the system is down. Neither is set
	// while the transport does not tell.
	Acknowledged, Lost bool
}

// Flowing is a QP whose transport tells what moves.
type Flowing interface {
	// Flow asks the transport; ok is false if that does not tell now. Any goroutine may call it, but
	// not at the same time as Connect, Reset or Close.
	Flow() (f Flow, ok bool)
}

// SharedReceiver is a Device with shared receive queues.
type SharedReceiver interface {
	// NewSRQ makes a shared receive queue. The memory of its receives is of cfg.Zone.
	NewSRQ(cfg SRQConfig) (SRQ, error)
}

// SRQConfig configures a shared receive queue.
type SRQConfig struct {
	Zone            Zone
	Depth, Segments int // the most receives in the queue, and the most segments of each
	// OnLow is called once after each Arm: when fewer receives than Arm's limit
	// are left, or at once if that is already so. It only records and returns.
	OnLow func()
}

// SRQ is a shared receive queue. PostRecv may be called from any goroutine. The
// queue pairs take receives in the order posted, and a receive completes on the
// queue pair that took it.
type SRQ interface {
	// PostRecv appends receives and reports how many it took. When n < len(wrs),
	// err says why.
	PostRecv(wrs []RecvWR) (n int, err error)
	// Arm sets the low watermark, in receives; 0 disarms.
	Arm(limit int) error
	// Resize changes the depth; it fails when more receives are outstanding.
	Resize(depth int) error
	// Close fails with SRQ_IN_USE while a queue pair is attached.
	Close() error
}

// SRQCounter is an [SRQ] that can count the receives left in it.
type SRQCounter interface {
	// Available is the number of receives that were posted and that no queue pair
	// has taken. Any goroutine may call it.
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
	// NextKey is the key that the next bind of the window will give it: known
	// before the bind is posted, valid when the bind has completed. 0 means that
	// no key is left and that the bind would fail. Any goroutine may call it.
	NextKey() uint32
	// Forget gives up the next key, and NextKey goes on to another. The caller
	// uses it when the bind never reached the device although peers may know the
	// key. It does nothing for a key that was bound or forgotten before. Any
	// goroutine may call it.
	Forget(key uint32)
	// Bound reports whether the window is still bound: a peer may have invalidated
	// it. A device that can't tell returns true. Any goroutine may call it.
	Bound() bool
	// Close unbinds the window if it is bound. The caller has no bind outstanding.
	Close() error
}

// Bind is the argument of OpBind. With Len 0 it unbinds.
type Bind struct {
	Window    Window
	MR        MR
	Addr      uint64 // virtual address within MR
	Len       uint64 // bytes
	Priv      Privileges
	Key       uint32 // what Window.NextKey returned
	ZeroBased bool
}

// Remapper is an [MR] whose memory can be exchanged, at the cost of a few stores. A
// device that accesses memory from this process is one. Verbs has ibv_rereg_mr with
// IBV_REREG_MR_CHANGE_TRANSLATION, which pins pages.
type Remapper interface {
	// Remap gives the region mem in place of the memory that it had. Its keys,
	// privileges and the address of its first byte stay; its length becomes that of mem.
	// With mem of the same length, requests by its keys succeed at every moment, and
	// those outstanding go on in mem. With another length they may fail. It fails with
	// LMR_IN_USE while a window is bound to the region, and then does nothing.
	//
	// If the region allows LocalRead alone, the caller answers for it that nobody changes
	// mem while a request reads it. So the device may compute a CRC over mem before it
	// sends mem; a change in between breaks the connection.
	//
	// If of the remote privileges the region allows RemoteWrite alone, it takes one write of a
	// peer between two exchanges. From the first Remap on its memory, the former too, is the
	// device's until it is exchanged: beside the bytes of a write that is complete it may hold
	// anything. So the device may place octets of a peer's stream there before it knows which
	// of them are the write's, and check a CRC over the memory; a change by others breaks the
	// connection. Before the end of the write it places there nothing but the write's bytes, and
	// a byte that has come to the former memory does not come to the next one, too.
	Remap(mem []byte) error
	// Settle waits until every access that began before the call has ended: after a
	// Remap, no byte of the former memory is read or changed any more. It waits for a
	// chunk of a copy at most, never for a peer.
	//
	// Of a region that is gone Remap fails, and Settle changes nothing.
	Settle()
}

// AsyncKind says what an AsyncEvent reports.
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
	QP   QP  // of AsyncQPError
	CQ   CQ  // of AsyncCQOverrun
	SRQ  SRQ // of AsyncSRQError
	Err  error
}

// CountingListener is a [Listener] that counts what it does with peers before they have
// asked for a connection.
type CountingListener interface {
	Listener
	// Counts returns the counts of this moment. It does not block.
	Counts() ListenerCounts
}

// ListenerCounts is what a [CountingListener] counts. All but HalfOpen, Spoke, Alike and Stranger only grow.
type ListenerCounts struct {
	HalfOpen    int    // peers whose request has not come yet
	GaveWay     uint64 // those of them that gave way to newer ones
	Silent      uint64 // those whose request did not come, or was none
	Foreign     uint64 // those of Silent that spoke another protocol
	Spoke       string // what the last of these spoke, and what mends that; empty if there was none
	Alike       uint64 // how many of Foreign in a row, the last one too, spoke that
	Stranger    string // the address of the last
	Descriptors uint64 // peers that were refused because the system has no descriptor left
}

// SilenceFacts is a [Facts] that hears of a peer that does not answer before the connection ends
// for it.
type SilenceFacts interface {
	Facts
	// Silent reports for how long the peer has not answered what the device asked of it, a read
	// or a probe of the device's own; 0 says that the peer has answered. It does not block.
	Silent(d time.Duration)
}
