package target

import (
	"bytes"
	"errors"
	"syscall"

	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// io serves a command of an I/O queue.
func (q *queue) io(c *command) {
	if c.Opcode == nvme.IOFlush && c.NSID == nvme.AllNamespaces {
		q.flushNext(c, nil)
		return
	}
	var status nvme.Status
	if c.disk, status = q.disks.disk(c.NSID); status != nvme.Success {
		q.complete(c, status)
		return
	}
	if status = c.disk.access(); status != nvme.Success {
		q.complete(c, status)
		return
	}
	switch c.Opcode {
	case nvme.IOFlush:
		c.next = (*queue).finish
		q.submit(c, job{n: len(c.disk.memory), flush: true})
	case nvme.IORead, nvme.IOWrite, nvme.IOCompare:
		q.readOrWrite(c)
	case nvme.IOWriteZeroes:
		q.writeZeroes(c)
	case nvme.IODataset:
		q.dataset(c)
	default:
		q.complete(c, nvme.InvalidOpcode|nvme.DoNotRetry)
	}
}

// forced reports whether a command is about stable blocks, in a store that does not make
// them stable by itself.
func (c *command) forced() bool { return c.disk.volatile && c.CDW12&nvme.ForceUnitAccess != 0 }

// span is the range of blocks that the command is about; see namespace.span.
func (c *command) span() (off, n int, ok bool) { return c.disk.span(c.LBA(), c.Blocks()) }

// readOrWrite begins a Read, Write or Compare.
func (q *queue) readOrWrite(c *command) {
	off, n, ok := c.span()
	switch status := c.describes(n); {
	case !ok:
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
	case n > maxTransfer:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	case status != nvme.Success:
		q.complete(c, status)
	case c.Opcode == nvme.IORead && !c.Data.IsKeyed():
		q.complete(c, nvme.DescriptorTypeInvalid|nvme.DoNotRetry)
	case c.Opcode == nvme.IOWrite:
		q.write(c, off, n)
	case c.disk.reader != nil:
		q.gate(c, off, n)
	default:
		q.readOrCompare(c, off, n)
	}
}

// readOrCompare goes on with a Read or Compare whose description is right.
func (q *queue) readOrCompare(c *command, off, n int) {
	switch {
	case c.Opcode == nvme.IORead && c.forced():
		// The blocks must be stable, also if another host has only just written them.
		c.next = (*queue).readStable
		q.submit(c, job{off: off, n: n, flush: true})
	case c.Opcode == nvme.IORead:
		q.readBlocks(c, off, n)
	case c.Data.IsKeyed():
		q.fetch(c, 0, min(n, inCapsule), (*queue).compare)
	default:
		q.compareWith(c, c.inline())
	}
}

// accessible probes n bytes from an offset on, right before the target or the provider
// accesses them. If they can't be accessed it completes the command.
func (q *queue) accessible(c *command, off, n int) bool {
	if c.disk.prober == nil {
		return true
	}
	write := c.Opcode == nvme.IOWrite
	err := c.disk.prober.Probe(off, n, write)
	if err == nil {
		return true
	}
	q.target.log.Error("blocks can't be accessed", "host", q.conn, "namespace", c.NSID, "opcode", c.Opcode, "lba", c.LBA(), "blocks", c.Blocks(), "error", err)
	if write {
		q.complete(c, nvme.WriteFault)
	} else {
		q.complete(c, nvme.ReadError)
	}
	return false
}

// readStable goes on with a Read whose blocks were flushed.
func (q *queue) readStable(c *command, err error) {
	if err != nil {
		q.finish(c, err)
		return
	}
	off, n, _ := c.span()
	q.readBlocks(c, off, n)
}

// readBlocks writes blocks into the host's memory. The completion goes in the same batch.
func (q *queue) readBlocks(c *command, off, n int) {
	if q.accessible(c, off, n) {
		q.transfer(dat.OpWrite, c, c.disk.segment(off, n), 0)
		q.complete(c, nvme.Success)
	}
}

// write reads blocks from the host's memory, or copies them out of the capsule, unless the store
// is a Writer.
//
// On loop an RDMA read has ended when it was posted, so the completion goes in the same
// batch, behind a fence. Over a network a fence would keep back the requests behind it for
// as long as the read takes, so there the end of the read is an event.
func (q *queue) write(c *command, off, n int) {
	switch {
	case c.disk.writer != nil:
		q.place(c, off, n)
	case !q.accessible(c, off, n):
	case !c.Data.IsKeyed():
		copy(c.disk.memory[off:off+n], c.inline())
		q.written(c, nil)
	case q.from.fences && !c.forced():
		q.transfer(dat.OpRead, c, c.disk.segment(off, n), 0).Flags = dat.Suppress
		q.answer(c, nvme.Success, 0).Flags |= dat.BarrierFence
	default:
		c.next = (*queue).written
		q.transfer(dat.OpRead, c, c.disk.segment(off, n), 0)
	}
}

// written goes on with a Write whose data is in the store.
func (q *queue) written(c *command, _ error) {
	if !c.forced() {
		q.complete(c, nvme.Success)
		return
	}
	off, n, _ := c.span()
	c.next = (*queue).finish
	q.submit(c, job{off: off, n: n, flush: true})
}

// compare compares a part of a Compare's data, which is in the capsule's memory, and gets
// the next part.
func (q *queue) compare(c *command, _ error) { q.compareWith(c, c.short()) }

// compareWith compares the blocks from c.at on with a part of the data.
func (q *queue) compareWith(c *command, part []byte) {
	off, n, _ := c.span()
	if !q.accessible(c, off+c.at, len(part)) {
		return
	}
	same := bytes.Equal(part, c.disk.memory[off+c.at:][:len(part)])
	c.at += len(part)
	switch {
	case !same:
		q.complete(c, nvme.CompareFailure|nvme.DoNotRetry)
	case c.at == n:
		q.complete(c, nvme.Success)
	default:
		q.fetch(c, c.at, min(n-c.at, inCapsule), (*queue).compare)
	}
}

// flushNext goes on with a Flush of all namespaces, of which c.at is the last one that was
// flushed.
func (q *queue) flushNext(c *command, err error) {
	for last := len(*q.target.namespaces.list.Load()); err == nil && c.at < last; {
		c.at++
		var status nvme.Status
		if c.disk, status = q.disks.disk(uint32(c.at)); status == nvme.Success {
			if status = c.disk.access(); status != nvme.Success {
				q.complete(c, status)
				return
			}
			c.next = (*queue).flushNext
			q.submit(c, job{n: len(c.disk.memory), flush: true})
			return
		}
	}
	q.finish(c, err)
}

// writeZeroes serves a Write Zeroes.
func (q *queue) writeZeroes(c *command) {
	off, n, ok := c.span()
	if !ok {
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
		return
	}
	c.next = (*queue).finish
	q.submit(c, job{off: off, n: n, zero: true, flush: c.forced()})
}

// dataset begins a Dataset Management: it gets the list of ranges. Linux describes
// memory for as many ranges as there may be, however many the command has.
func (q *queue) dataset(c *command) {
	n := c.Ranges() * nvme.RangeLen
	switch status := c.describesLeast(n); {
	case status != nvme.Success:
		q.complete(c, status)
	case c.CDW11&nvme.DatasetDeallocate == 0:
		q.complete(c, nvme.Success) // the rest is advice
	case c.Data.IsKeyed():
		q.fetch(c, 0, n, (*queue).deallocate)
	default:
		ranges := c.inline()[:n]
		c.inside = n
		copy(c.short(), ranges)
		q.deallocate(c, nil)
	}
}

// deallocate deallocates the next range of the list, which is in the capsule's memory.
func (q *queue) deallocate(c *command, err error) {
	list := c.short()
	if err != nil || c.at == len(list) {
		q.finish(c, err)
		return
	}
	r := nvme.ParseRange(list[c.at:])
	c.at += nvme.RangeLen
	off, n, ok := c.disk.span(r.LBA, uint64(r.Blocks))
	if !ok {
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
		return
	}
	c.next = (*queue).deallocate
	q.submit(c, job{off: off, n: n, zero: true})
}

// submit gives a job to the worker of the command's disk. The command's next step
// gets the result.
func (q *queue) submit(c *command, j job) {
	j.from, j.command, j.cid = q, int32(c.slot), c.CID
	c.disk.worker.submit(j)
}

// finish completes a command with the outcome of its job.
func (q *queue) finish(c *command, err error) {
	if err == nil {
		q.complete(c, nvme.Success)
		return
	}
	q.fail(c, err)
}

// fail completes a command whose job has failed.
func (q *queue) fail(c *command, err error) {
	var status nvme.StatusError
	switch {
	case errors.As(err, &status):
		q.complete(c, nvme.Status(status))
	case errors.Is(err, syscall.ENOSPC):
		q.complete(c, nvme.CapacityExceeded)
	case errors.Is(err, errAborted):
		q.complete(c, nvme.AbortRequested)
	default:
		q.target.log.Error("store", "host", q.conn, "namespace", c.NSID, "opcode", c.Opcode, "error", err)
		q.complete(c, nvme.WriteFault)
	}
}
