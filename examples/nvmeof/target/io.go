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
	if c.Opcode == nvme.IOFlush {
		q.flushStore(c)
		return
	}
	ns := q.target.namespace(c.NSID)
	if ns == nil {
		q.complete(c, nvme.InvalidNamespace|nvme.DoNotRetry)
		return
	}
	switch c.Opcode {
	case nvme.IORead, nvme.IOWrite, nvme.IOCompare:
		q.readOrWrite(c, ns)
	case nvme.IOWriteZeroes:
		q.writeZeroes(c, ns)
	case nvme.IODataset:
		q.dataset(c)
	default:
		q.complete(c, nvme.InvalidOpcode|nvme.DoNotRetry)
	}
}

// namespace is the namespace with an id, or nil.
func (t *Target) namespace(nsid uint32) *namespace {
	if nsid == 0 || uint64(nsid) > uint64(len(t.namespaces)) {
		return nil
	}
	return t.namespaces[nsid-1]
}

// forced reports whether a command is about stable blocks, in a store that does not make
// them stable by itself.
func (c *command) forced(ns *namespace) bool { return ns.volatile && c.CDW12&nvme.ForceUnitAccess != 0 }

// readOrWrite begins a Read, Write or Compare.
func (q *queue) readOrWrite(c *command, ns *namespace) {
	off, n, ok := ns.span(c.LBA(), c.Blocks())
	switch status := c.describes(n); {
	case !ok:
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
	case n > maxTransfer:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	case status != nvme.Success:
		q.complete(c, status)
	case c.Opcode == nvme.IORead && !c.Data.IsKeyed():
		q.complete(c, nvme.DescriptorTypeInvalid|nvme.DoNotRetry)
	case c.Opcode == nvme.IORead && c.forced(ns):
		// The blocks must be stable, also if another host has only just written them.
		c.next = (*queue).read
		q.submit(c, job{off: off, n: n, flush: true})
	case c.Opcode == nvme.IORead:
		q.read(c, nil)
	case c.Opcode == nvme.IOWrite:
		q.write(c, ns, off, n)
	case c.Data.IsKeyed():
		q.fetch(c, 0, min(n, inCapsule), (*queue).compare)
	default:
		q.compareResult(c, bytes.Equal(c.inline(), ns.memory[off:off+n]))
	}
}

// read writes blocks into the host's memory. The completion goes in the same batch.
func (q *queue) read(c *command, err error) {
	if err != nil {
		q.finish(c, err)
		return
	}
	off, n, _ := q.target.namespaces[c.NSID-1].span(c.LBA(), c.Blocks())
	q.transfer(dat.OpWrite, c, q.regions[c.NSID-1].Segment(off, n), 0)
	q.complete(c, nvme.Success)
}

// write reads blocks from the host's memory, or copies them out of the capsule.
func (q *queue) write(c *command, ns *namespace, off, n int) {
	if c.Data.IsKeyed() {
		c.next = (*queue).written
		q.transfer(dat.OpRead, c, q.regions[c.NSID-1].Segment(off, n), 0)
		return
	}
	copy(ns.memory[off:off+n], c.inline())
	q.written(c, nil)
}

// written goes on with a Write whose data is in the store.
func (q *queue) written(c *command, _ error) {
	ns := q.target.namespaces[c.NSID-1]
	if !c.forced(ns) {
		q.complete(c, nvme.Success)
		return
	}
	off, n, _ := ns.span(c.LBA(), c.Blocks())
	c.next = (*queue).finish
	q.submit(c, job{off: off, n: n, flush: true})
}

// compare compares a part of a Compare's data, which is in the capsule's memory, and gets
// the next part.
func (q *queue) compare(c *command, _ error) {
	ns := q.target.namespaces[c.NSID-1]
	off, n, _ := ns.span(c.LBA(), c.Blocks())
	part := c.capsule.Bytes()[data:]
	same := bytes.Equal(part, ns.memory[off+c.at:][:len(part)])
	c.at += len(part)
	if !same || c.at == n {
		q.compareResult(c, same)
		return
	}
	q.fetch(c, c.at, min(n-c.at, inCapsule), (*queue).compare)
}

func (q *queue) compareResult(c *command, same bool) {
	if same {
		q.complete(c, nvme.Success)
	} else {
		q.complete(c, nvme.CompareFailure|nvme.DoNotRetry)
	}
}

// flushStore serves a Flush, of one namespace or of all.
func (q *queue) flushStore(c *command) {
	if c.NSID == nvme.AllNamespaces {
		c.NSID, c.at = 1, len(q.target.namespaces) // and on to the last one
	}
	ns := q.target.namespace(c.NSID)
	if ns == nil {
		q.complete(c, nvme.InvalidNamespace|nvme.DoNotRetry)
		return
	}
	c.next = (*queue).flushed
	q.submit(c, job{n: len(ns.memory), flush: true})
}

// flushed completes a Flush, or goes on to the next namespace.
func (q *queue) flushed(c *command, err error) {
	if err != nil || int(c.NSID) >= c.at {
		q.finish(c, err)
		return
	}
	c.NSID++
	q.submit(c, job{n: len(q.target.namespaces[c.NSID-1].memory), flush: true})
}

// writeZeroes serves a Write Zeroes.
func (q *queue) writeZeroes(c *command, ns *namespace) {
	off, n, ok := ns.span(c.LBA(), c.Blocks())
	if !ok {
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
		return
	}
	c.next = (*queue).finish
	q.submit(c, job{off: off, n: n, zero: true, flush: c.forced(ns)})
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
		list, _ := c.short(n)
		copy(list, ranges)
		q.deallocate(c, nil)
	}
}

// deallocate deallocates the next range of the list, which is in the capsule's memory.
func (q *queue) deallocate(c *command, err error) {
	list := c.capsule.Bytes()[data:]
	if err != nil || c.at == len(list) {
		q.finish(c, err)
		return
	}
	r := nvme.ParseRange(list[c.at:])
	c.at += nvme.RangeLen
	off, n, ok := q.target.namespaces[c.NSID-1].span(r.LBA, uint64(r.Blocks))
	if !ok {
		q.complete(c, nvme.LBAOutOfRange|nvme.DoNotRetry)
		return
	}
	c.next = (*queue).deallocate
	q.submit(c, job{off: off, n: n, zero: true})
}

// submit gives a job to the worker of the command's namespace. The command's next step
// gets the result.
func (q *queue) submit(c *command, j job) {
	j.from, j.command = q, int32(c.capsule.Index())
	q.target.namespaces[c.NSID-1].worker.jobs <- j
}

// finish completes a command with the outcome of its job.
func (q *queue) finish(c *command, err error) {
	switch {
	case err == nil:
		q.complete(c, nvme.Success)
	case errors.Is(err, syscall.ENOSPC):
		q.complete(c, nvme.CapacityExceeded)
	default:
		q.target.log.Error("store", "host", q.conn, "namespace", c.NSID, "opcode", c.Opcode, "error", err)
		q.complete(c, nvme.WriteFault)
	}
}
