// Package host is an NVMe over Fabrics host (an initiator) on RDMA, for tests, load, and
// programs that want a disk without a kernel.
//
// A Controller is the connection to a subsystem: an admin queue, and I/O queues. Each queue
// has as many slots as entries but one. A slot is registered memory: a capsule, and data
// that the target reads and writes.
//
// There are two ways to run I/O commands. A Disk has ReadAt and WriteAt, which copy between
// a slot and the caller's memory and wait for the command; any number of goroutines may
// call them. A Pipeline is a queue of one goroutine's own, which submits commands and takes
// their completions, many at a time, without a copy and without a goroutine for each.
package host
