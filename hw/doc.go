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
// The owner calls Break exactly once per life, and posts nothing from then until
// Reset. The provider answers in band: it flushes what is outstanding and ends
// each queue's completions with one OpEnd. Once the owner has seen both OpEnds,
// nothing of that life can arrive any more.
//
// # Rules for calls
//
// The owner of a queue pair makes all calls on it one at a time. None of them
// blocks, and none calls back into user code. A provider may call a [Sink] and
// [Facts] from inside those calls, or from goroutines of its own; their methods
// only record what they are told and return.
//
// The package imports the standard library and nothing else.
package hw
