// Package target serves disks to hosts by NVMe over Fabrics on RDMA.
//
// A host has one connection for each queue: one admin queue, and I/O queues. A queue is a
// goroutine with one select, over what its connection brings, what the workers of the
// stores have finished, changes of the namespaces, a timer, and the end. Only that goroutine touches the queue. The
// queues of a host meet in its controller, which I/O commands do not touch.
//
// The stages of an I/O command:
//
//	capsule arrives   queue.received       parse, check against the namespace
//	store is asked    command.gate         a Read or Compare waits for a store that is a Reader
//	data moves        command.readBlocks   the store's memory by RDMA write, and behind it the completion, as one batch
//	                  command.writeBlocks  RDMA read into the store's memory, or a copy out of the capsule
//	                  command.place        the same into the room of a store that is a Writer, which completes it
//	store works       worker               flush and zero, which may block
//	completion        command.complete     goes out with the next flush
//
// A capsule comes into a slot, which is all that a command needs: short data is there
// behind the command's 64 bytes. A queue has a slot for each of its entries, and posts the
// receives of slots that are free again, the transfers and the completions of all commands
// at hand as one batch each. The data of reads and writes is moved between the host's
// memory and the store's without a copy.
//
// The namespaces are in a table that is replaced as a whole when one changes. A queue
// registers the memory of a namespace in its connection's zone at the first use, and
// keeps it to its end, since the device may have transfers under way that no completion
// tells of; so a store is closed when the last such queue has ended.
//
// # What a host can't do
//
// The target gives out no keys: hosts can't reach its memory, and a host's keys are used
// on the connection on which they came. A command that asks for blocks beyond its
// namespace, or describes its data wrongly, is completed with the specification's
// status. A host that sends more commands than its queue has entries, or capsules that
// are too short, loses that connection. A connection that sends no Connect command, and a
// controller that keeps no Keep Alive, end after a time. What a host sent by connections that it has given up does not
// land behind what it does after it has connected anew (former.go).
package target
