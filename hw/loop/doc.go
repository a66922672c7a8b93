// Package loop is the provider inside the process: a connection joins two queue
// pairs, and the poster moves the bytes, from the segments of one side straight to
// those of the other, before the post returns, if the pipe is free and the receive is there; otherwise its
// holder does, or a worker, which moves what is longer than `handover` (1 MiB).
//
// Importing it registers the provider "loop". Each open makes a new device, under the
// name that the program gives, or "loop". All devices open under one name share that
// name's connection qualifiers, process-wide; each has memory, queue pairs and limits
// of its own. Addresses are device names; a loopback address, "localhost" and the
// unspecified address name the device on which they are used. There are two parameters:
//
//	handover   how many bytes a call may copy for the requests that it posts, from 0 to
//	           1048576. A worker copies what is longer, and what a batch has beyond
//	           that. 1048576 unless set: the copy by a worker on another processor
//	           takes at least half as long again as that by the call.
//	           A program whose posters may not be kept that long sets less. The sender's
//	           device decides.
//	notready   what a send does that finds no receive, if the program has not chosen:
//	           with fail, the default, the send ends the connection as on iWARP, so that
//	           a program that outruns its peer fails in its tests; with wait it waits as
//	           on InfiniBand, a second unless the program says otherwise. This is for
//	           connections that runtime's Dial and Listen make. An endpoint that a
//	           program makes itself waits as its attributes say.
//
// # How it works
//
// A connection is two pipes, one for each direction. A pipe joins one side's
// send queue to the other's receive queue. Only the holder of the pipe's token takes from
// both queues, copies, completes and flushes. A goroutine takes the token by a
// compare-and-swap, and none ever waits for it: one that finds it held leaves a mark, and
// the holder looks again before it lets go (see package token).
//
//	PostRun    takes the pipe if it is free and executes plain requests
//	PostSend   takes the pipe if it is free and executes from the caller's
//	           array; what can't be done now goes to the send queue
//	PostRecv   fills the receive queue, and runs the pipe if a send waits there
//	workers    copy what is longer than handover: see worker.go
//	a watch    fails the sends that wait too long for a receive: see watch.go
//	SRQ        a pipe takes a receive from a shared receive queue when its send
//	           needs one; a pipe that finds none waits in line: see srq.go
//	windows    have keys like a region's, which binds enter and kill: see window.go
//	pairs      connect by exchanged values, and have no listener: see pair.go
//
// # What is particular to this provider
//
// Operations of one queue pair execute in the order posted, one after another,
// so a fence has nothing to wait for, and read credits are never used up. A read
// or an atomic fails at once when one side has no credits: with StatusLocalEP if
// QPConfig.ReadsOut is 0, with StatusRemoteResponder if the peer's ReadsIn is 0.
// Atomics are atomic against each other and against sync/atomic, not against a
// send or write to the same place. The address of an atomic's target must be
// aligned to 8 bytes, or the atomic fails with StatusRemoteResponder. The initiator
// gets the old value in host order.
//
// A shared receive queue and the queue pairs that take from it are of one zone.
// Receives count as outstanding in it until a queue pair takes them. A pipe takes a
// receive when the send that needs it is ready to move: a send that fails for its own
// memory takes none.
//
// A bind needs the region's LocalRead for RemoteRead, and LocalWrite for
// RemoteWrite and RemoteAtomic; an unbind ignores Bind.Key. A post refuses a bind with
// a wrong handle; with any other error the bind fails with StatusBindFailed, and
// leaves the window as it was or unbound. A window can be addressed from zero. When a
// bind completes, the window's old key is dead and no access through it is in
// progress; so a poster may leave a bind to a worker. A queue pair's own window stays
// bound when the queue pair is reset.
//
// A send with invalidate unbinds the window whose key it names, or takes the remote
// privileges from the region whose key it names. If the sender could not have used
// the key, the send fails with StatusRemoteAccess and completes no receive.
//
// A message that is too long for the receive fails with StatusLocalLength at the receiver and
// StatusRemoteResponder at the sender; a message whose receive names dead memory fails with
// StatusLocalProtection and StatusRemoteResponder. An Accept whose initiator has gone causes
// Refused(ReasonUnreachable). A send to a peer that never pairs waits for as long as the
// peer's queue pair is open.
package loop
