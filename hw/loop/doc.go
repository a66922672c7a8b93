// Package loop is the provider inside the process: a connection joins two queue
// pairs, and whoever posts moves the bytes, from the segments of one side
// straight to those of the other, before the post returns.
//
// Importing it registers the provider "loop". Its devices are made by opening
// them: a name, or "loop" when none is given. All devices open under one name
// share that name's connection qualifiers, process-wide, and have their memory,
// queue pairs and limits each to itself. Addresses are device names. There are
// no parameters.
//
// # How it works
//
// A connection is two pipes, one for each direction. A pipe joins one side's
// send queue to the other's receive queue, and whoever holds it is the only one
// to take from both, to copy, and to complete and flush both. A compare-and-swap of the
// pipe's token takes it, and nobody ever waits for it: a poster that finds it held
// leaves a mark, and the holder looks again before it lets go (see token.go).
//
//	PostSend   takes the pipe if it is free and executes from the caller's
//	           array; what can't be done now goes to the send queue
//	PostRecv   fills the receive queue, and runs the pipe if a send waits there
//	workers    do what is too long for a poster: see worker.go
//	a watch    fails the sends that wait too long for a receive: see watch.go
//	SRQ        a pipe takes from a shared receive queue, one at a time, what its
//	           send needs; a pipe that finds none stands in line: see srq.go
//	windows    are keys like a region's, which a bind makes and kills: see window.go
//
// # What else it does its own way
//
// Operations of one queue pair execute in the order posted, one after another,
// so a fence has nothing to wait for, and read credits are never used up. A read
// or an atomic fails at once when one side has none: with StatusLocalEP where
// QPConfig.ReadsOut is 0, with StatusRemoteResponder where the peer's ReadsIn is.
// Atomics are atomic against each other and against sync/atomic, not against a
// send or write to the same place; the address of their target must be aligned
// to 8 bytes, or they fail with StatusRemoteResponder. The initiator sees the old value in host
// order.
//
// A shared receive queue and the queue pairs that take from it are of one zone.
// What is outstanding in it are the receives that nobody has taken. A receive is
// taken when the send that needs it is ready to move: one that fails for its own
// memory takes none.
//
// A bind needs the region's LocalRead for RemoteRead, and LocalWrite for
// RemoteWrite and RemoteAtomic; an unbind ignores Bind.Key. What is wrong with the
// handles is refused at the post, everything else fails with StatusBindFailed, and
// leaves the window as it was or unbound. A window can be addressed from zero. Its
// old key is dead, and no access through it under way, when the bind completes;
// so a bind may be left to a worker. A queue pair's own window stays bound when
// the queue pair is reset.
//
// A send invalidates a window's key, which unbinds the window, or a region's, which
// then has no remote privileges any more. A key that the sender could not have used
// fails with StatusRemoteAccess, and no receive is completed.
//
// A message that is too long for the receive fails with StatusLocalLength there
// and StatusRemoteResponder at the sender; a receive into memory that is gone
// with StatusLocalProtection and StatusRemoteResponder. An Accept whose initiator
// has gone gives Refused(ReasonUnreachable).
package loop
