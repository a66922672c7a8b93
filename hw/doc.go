// Package hw is the contract between the runtime and a provider: the small
// interfaces a device implements, and the vocabulary both sides share (work
// requests, completions, statuses, privileges, return codes).
//
// A provider reports facts (a connection request came, the peer is gone); only
// the endpoint that owns a queue pair decides the connection's state.
//
// # The life of a queue pair
//
//	NewQP ── Connect, Accept or Pair ──── Facts.Established ── work ──┐
//	  ▲                        └─ Facts.Refused ─┐   Facts.Down ◄─────┤
//	  └───────── Reset ◄── OpEnd on both queues ◄┴─── Break ◄─────────┘
//
// The owner calls Break exactly once per life, and posts nothing from then until
// Reset. The provider flushes what is outstanding and ends each queue's completions
// with one OpEnd. Once the owner has seen both OpEnds, nothing of that life can arrive
// any more.
//
// # Rules for calls
//
// The owner of a queue pair makes all calls on it one at a time. None of them blocks, and
// none calls back into user code. A provider may call a [Sink] and [Facts] from inside
// those calls, or from goroutines of its own. The methods of a Sink and of Facts wait for
// nothing, and run no code of the program's. They may call the queue pair, as Down may
// call Break, unless the provider called them from inside a call on that queue pair;
// ListenConfig.OnRequest may make a queue pair. So while a provider calls any of these, it
// holds no lock that its own methods take.
//
// # How programs and tests find a provider
//
// A provider calls [MustRegister] in its init, and a program that imports it opens it by name.
// A program can also give the provider itself to godat/runtime.WithProvider. A test calls
// hwtest.TestProvider, which holds the provider to this contract.
//
// # What is optional
//
// The interfaces below are optional: package godat/examples/provider has none of them. The
// runtime finds them by type assertion. Each has a benefit:
//
//   - [Polled], of a Device: completions stay in queues that a poller empties, as a
//     device of hardware has them. Without it the device calls sinks.
//   - [Sleeper], of a Polled device: its poller waits without a thread. Without it a thread blocks, and Go's
//     scheduler takes tens of microseconds to notice that its processor is free.
//   - [Progresser], of a Device: consumers that poll do the device's work, so that a
//     message wakes no goroutine. Without it a goroutine of the device does the work.
//   - [Watchable], of a QP: a Read of a byte stream receives in its own goroutine.
//     Without it another goroutine receives, and wakes the reader.
//   - [Runner], of a QP: requests of one segment, passed as arguments in place of an array. Without it a post
//     costs more, which counts on a device whose own cost is small, as loop's is.
//   - [SeriesSink], of a Sink: plain successes without an array for each, and a mark that
//     more of them follow. A device that uses it delivers a run's completions together.
//   - [Remapper], of an MR: a byte stream writes from, and reads into, the memory that
//     the program gives it. Without it the bytes go through a buffer.
//   - [Tracer], of a QP: a program records what one connection carries. Without it the
//     program's call is MODEL_NOT_SUPPORTED.
//   - [Flowing], of a QP: calls tell a peer behind a slow link from one that does nothing. Without it they
//     wait as for one that does nothing.
//   - [SharedReceiver] and [Binder], of a Device: shared receive queues, and memory
//     windows. Without them the program's calls are MODEL_NOT_SUPPORTED.
//   - [Pairer], of a Device: queue pairs connect by values that the two programs exchange,
//     as with ibv_rc_pingpong. Without it the program's calls are MODEL_NOT_SUPPORTED.
//
// These tell the page of package godat/runtime/inspect, and a program's queries, more:
//
//   - [Marker], of a QP: which requests without a completion have succeeded. Without it the completion of a
//     later request tells.
//   - [SRQCounter], of an SRQ: how many receives are left. Without it the query of a shared queue says that this is
//     unknown.
//   - [PollCounter], of a Device that completes by itself: how it noticed what came. Without it these counts are 0.
//   - [CountingListener], of a Listener: what it does with peers that have not asked for a connection yet. Without it these counts are 0.
//   - [SilenceFacts], of a Facts: a peer that does not answer yet. Without it the end of the connection tells that.
//   - [Informer], of a Provider: its version. Without it, it counts as a thread-safe one of DAT 2.0.
//
// The package imports the standard library and nothing else.
package hw
