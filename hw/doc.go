// Package hw is the contract between the runtime and a provider: the small
// interfaces a device implements, and the vocabulary both sides share (work
// requests, completions, statuses, privileges, return codes).
//
// A provider reports facts (a connection request came, the peer is gone); only
// the endpoint that owns a queue pair decides the connection's state.
//
// # The life of a queue pair
//
//	NewQP ── Connect or Request.Accept ── Facts.Established ── work ──┐
//	  ▲                        └─ Facts.Refused ─┐   Facts.Down ◄─────┤
//	  └───────── Reset ◄── OpEnd on both queues ◄┴─── Break ◄─────────┘
//
// Break is always called once per life, by the owner, and nothing is posted
// after it until Reset. The provider answers it in band: it flushes what is
// outstanding and ends each queue's completions with one OpEnd. An owner that
// has seen both knows that nothing of that life can arrive any more.
//
// # Who may call what
//
// The owner of a queue pair makes all calls on it one at a time. None of them
// blocks, and none calls back into user code. A provider may call sinks and
// facts from inside those calls, or from goroutines of its own; the owner only
// records and returns.
//
// The package imports the standard library and nothing else.
package hw
