// Package host is an NVMe over Fabrics host (an initiator) on RDMA, for tests, load, and
// programs that want a disk without a kernel.
//
// A Controller is the connection to a subsystem: an admin queue, and I/O queues on which
// the commands of its Disks go in turn. Each queue has as many slots as entries. A slot
// is registered memory, in which the target reads and writes, so ReadAt and WriteAt copy
// between it and the caller's memory. Calls wait for their completion and may run in any
// number of goroutines; as many commands are under way as there are slots.
package host
