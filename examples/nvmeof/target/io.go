package target

import (
	"bytes"
	"errors"
	"syscall"

	"godat/examples/nvmeof/nvme"
	"godat/hw"
)

// io serves a command of an I/O queue.
func (c *command) io() {
	if c.sqe.Opcode == nvme.IOFlush && c.sqe.NSID == nvme.AllNamespaces {
		c.flushNext(nil)
		return
	}
	var status nvme.Status
	if c.disk, status = c.q.disks.disk(c.sqe.NSID); status != nvme.Success {
		c.complete(status)
		return
	}
	if status = c.disk.access(); status != nvme.Success {
		c.complete(status)
		return
	}
	switch c.sqe.Opcode {
	case nvme.IOFlush:
		c.next = (*command).finish
		c.submit(job{n: len(c.disk.memory), flush: true})
	case nvme.IORead, nvme.IOWrite, nvme.IOCompare:
		c.readOrWrite()
	case nvme.IOWriteZeroes:
		c.writeZeroes()
	case nvme.IODataset:
		c.dataset()
	default:
		c.complete(nvme.InvalidOpcode | nvme.DoNotRetry)
	}
}

// forced reports whether a command is about stable blocks, in a store that does not make
// them stable by itself.
func (c *command) forced() bool { return c.disk.volatile && c.sqe.CDW12&nvme.ForceUnitAccess != 0 }

// span is the range of blocks that the command is about; see namespace.span.
func (c *command) span() (off, n int, ok bool) {
	return c.disk.span(c.sqe.LBA(), c.sqe.Blocks())
}

// readOrWrite begins a Read, Write or Compare.
func (c *command) readOrWrite() {
	off, n, ok := c.span()
	switch status := c.describes(n); {
	case !ok:
		c.complete(nvme.LBAOutOfRange | nvme.DoNotRetry)
	case n > c.q.target.cfg.Transfer:
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
	case status != nvme.Success:
		c.complete(status)
	case c.sqe.Opcode == nvme.IORead && !c.sqe.Data.IsKeyed():
		c.complete(nvme.DescriptorTypeInvalid | nvme.DoNotRetry)
	case c.sqe.Opcode == nvme.IOWrite:
		c.writeBlocks(off, n)
	case c.disk.reader != nil:
		c.gate(off, n)
	default:
		c.readOrCompare(off, n)
	}
}

// readOrCompare goes on with a Read or Compare whose description is right.
func (c *command) readOrCompare(off, n int) {
	switch {
	case c.sqe.Opcode == nvme.IORead && c.forced():
		// The blocks must be stable, also if another host has only just written them.
		c.next = (*command).readStable
		c.submit(job{off: off, n: n, flush: true})
	case c.sqe.Opcode == nvme.IORead:
		c.readBlocks(off, n)
	case c.sqe.Data.IsKeyed():
		c.fetch(0, min(n, inCapsule), (*command).compare)
	default:
		c.compareWith(c.inline())
	}
}

// accessible probes n bytes from an offset on, right before the target or the provider
// accesses them. If they can't be accessed it completes the command.
func (c *command) accessible(off, n int) bool {
	if c.disk.prober == nil {
		return true
	}
	write := c.sqe.Opcode == nvme.IOWrite
	err := c.disk.prober.Probe(off, n, write)
	if err == nil {
		return true
	}
	c.q.target.log.Error("blocks can't be accessed", "host", c.q.conn, "namespace", c.sqe.NSID, "opcode", c.sqe.Opcode, "lba", c.sqe.LBA(), "blocks", c.sqe.Blocks(), "error", err)
	if write {
		c.complete(nvme.WriteFault)
	} else {
		c.complete(nvme.ReadError)
	}
	return false
}

// readStable goes on with a Read whose blocks were flushed.
func (c *command) readStable(err error) {
	if err != nil {
		c.finish(err)
		return
	}
	off, n, _ := c.span()
	c.readBlocks(off, n)
}

// readBlocks writes blocks into the host's memory. The completion goes in the same batch.
func (c *command) readBlocks(off, n int) {
	if !c.accessible(off, n) {
		return
	}
	from := c.disk.segment(off, n)
	if c.disk.copier != nil && n <= inCapsule {
		c.inside = n
		if err := c.disk.copier.Copy(c.short(), off); err != nil {
			c.finish(err)
			return
		}
		from = c.behind(n)
	}
	c.transfer(hw.OpWrite, from, 0)
	c.complete(nvme.Success)
}

// writeBlocks reads blocks from the host's memory, or copies them out of the capsule, unless the store
// is a Writer.
//
// On loop an RDMA read has ended when it was posted, so the completion goes in the same
// batch, behind a fence. Over a network a fence would keep back the requests behind it for
// as long as the read takes, so there the end of the read is an event.
func (c *command) writeBlocks(off, n int) {
	switch {
	case c.disk.writer != nil:
		c.place(off, n)
	case !c.accessible(off, n):
	case !c.sqe.Data.IsKeyed():
		copy(c.disk.memory[off:off+n], c.inline())
		c.written(nil)
	case c.q.from.fences && !c.forced():
		c.transfer(hw.OpRead, c.disk.segment(off, n), 0)
		c.answer(nvme.Success, 0).Flags |= hw.BarrierFence
	default:
		c.next = (*command).written
		c.bring(c.disk.segment(off, n), 0)
	}
}

// written goes on with a Write whose data is in the store.
func (c *command) written(_ error) {
	if !c.forced() {
		c.complete(nvme.Success)
		return
	}
	off, n, _ := c.span()
	c.next = (*command).finish
	c.submit(job{off: off, n: n, flush: true})
}

// compare compares a part of a Compare's data, which is in the capsule's memory, and gets
// the next part.
func (c *command) compare(_ error) { c.compareWith(c.short()) }

// compareWith compares the blocks from c.at on with a part of the data.
func (c *command) compareWith(part []byte) {
	off, n, _ := c.span()
	if !c.accessible(off+c.at, len(part)) {
		return
	}
	var same bool
	var err error
	if c.disk.copier != nil {
		same, err = c.disk.copier.Same(part, off+c.at)
	} else {
		same = bytes.Equal(part, c.disk.memory[off+c.at:][:len(part)])
	}
	c.at += len(part)
	switch {
	case err != nil:
		c.finish(err)
	case !same:
		c.complete(nvme.CompareFailure | nvme.DoNotRetry)
	case c.at == n:
		c.complete(nvme.Success)
	default:
		c.fetch(c.at, min(n-c.at, inCapsule), (*command).compare)
	}
}

// flushNext goes on with a Flush of all namespaces, of which c.at is the last one that was
// flushed.
func (c *command) flushNext(err error) {
	for last := len(*c.q.target.namespaces.list.Load()); err == nil && c.at < last; {
		c.at++
		var status nvme.Status
		if c.disk, status = c.q.disks.disk(uint32(c.at)); status == nvme.Success {
			if status = c.disk.access(); status != nvme.Success {
				c.complete(status)
				return
			}
			c.next = (*command).flushNext
			c.submit(job{n: len(c.disk.memory), flush: true})
			return
		}
	}
	c.finish(err)
}

// writeZeroes serves a Write Zeroes.
func (c *command) writeZeroes() {
	off, n, ok := c.span()
	if !ok {
		c.complete(nvme.LBAOutOfRange | nvme.DoNotRetry)
		return
	}
	c.next = (*command).finish
	c.submit(job{off: off, n: n, zero: true, flush: c.forced()})
}

// dataset begins a Dataset Management: it gets the list of ranges. Linux describes
// memory for as many ranges as there may be, however many the command has.
func (c *command) dataset() {
	n := c.sqe.Ranges() * nvme.RangeLen
	switch status := c.describesLeast(n); {
	case status != nvme.Success:
		c.complete(status)
	case c.sqe.CDW11&nvme.DatasetDeallocate == 0:
		c.complete(nvme.Success) // the rest is advice
	case c.sqe.Data.IsKeyed():
		c.fetch(0, n, (*command).deallocate)
	default:
		ranges := c.inline()[:n]
		c.inside = n
		copy(c.short(), ranges)
		c.deallocate(nil)
	}
}

// deallocate deallocates the next range of the list, which is in the capsule's memory.
func (c *command) deallocate(err error) {
	list := c.short()
	for err == nil && c.at < len(list) {
		r := nvme.ParseRange(list[c.at:])
		c.at += nvme.RangeLen
		off, n, ok := c.disk.span(r.LBA, uint64(r.Blocks))
		switch {
		case !ok:
			c.complete(nvme.LBAOutOfRange | nvme.DoNotRetry)
			return
		case n > 0: // a range may have no blocks
			c.next = (*command).deallocate
			c.submit(job{off: off, n: n, zero: true})
			return
		}
	}
	c.finish(err)
}

// submit gives a job to the worker of the command's disk. The command's next step
// gets the result.
func (c *command) submit(j job) {
	j.from, j.command, j.cid = c.q, int32(c.slot), c.sqe.CID
	c.disk.worker.submit(j)
}

// finish completes a command with the outcome of its job.
func (c *command) finish(err error) {
	if err == nil {
		c.complete(nvme.Success)
		return
	}
	c.fail(err)
}

// fail completes a command whose job has failed.
func (c *command) fail(err error) {
	var status nvme.StatusError
	switch {
	case errors.As(err, &status):
		c.complete(nvme.Status(status))
	case errors.Is(err, syscall.ENOSPC):
		c.q.target.log.Error("store: its file system is full: make room there", "host", c.q.conn, "namespace", c.sqe.NSID, "opcode", c.sqe.Opcode, "error", err)
		c.complete(nvme.CapacityExceeded)
	case errors.Is(err, errAborted):
		c.complete(nvme.AbortRequested)
	default:
		c.q.target.log.Error("store", "host", c.q.conn, "namespace", c.sqe.NSID, "opcode", c.sqe.Opcode, "error", err)
		c.complete(nvme.WriteFault)
	}
}
