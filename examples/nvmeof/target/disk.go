package target

import (
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// disk is a namespace whose memory is registered in the zone of a connection.
type disk struct {
	*namespace
	local mem.Segment // all of the memory, but for its length, which may be more than a segment's
	room  mem.Segment // the same of a Writer's room
	annex mem.Segment // and of its annex
}

// segment is a range of the memory, which span has checked.
func (d *disk) segment(off, n int) mem.Segment {
	return part(d.local, off, n)
}

// part is a range of registered memory.
func part(all mem.Segment, off, n int) mem.Segment {
	return mem.Segment{Addr: all.Addr + uint64(off), Len: uint32(n), Context: all.Context}
}

// disks are those of a queue, whose goroutine owns them.
type disks struct {
	target *Target
	conn   *dat.Conn
	open   []*disk      // by namespace id, from 1
	held   []*namespace // those that giveBack gives back
}

// disk is the disk of a namespace that is there. The first command for one that was put
// in the table after the queue began registers its memory. The queue keeps a disk that
// was replaced or removed until it ends: transfers to and from it may be under way.
func (d *disks) disk(nsid uint32) (*disk, nvme.Status) {
	ns := d.target.namespaces.at(nsid)
	if ns == nil {
		return nil, nvme.InvalidNamespace | nvme.DoNotRetry
	}
	if uint64(nsid) <= uint64(len(d.open)) && d.open[nsid-1].namespace == ns {
		return d.open[nsid-1], nvme.Success
	}
	return d.add(nsid)
}

// add registers the memory of a namespace.
func (d *disks) add(nsid uint32) (*disk, nvme.Status) {
	ns := d.target.namespaces.acquire(nsid)
	if ns == nil {
		return nil, nvme.InvalidNamespace | nvme.DoNotRetry
	}
	opened := &disk{namespace: ns}
	err := d.register(ns.memory, &opened.local)
	if err == nil && ns.writer != nil {
		err = d.register(ns.writer.Room(), &opened.room)
	}
	if err == nil && ns.annexed != nil {
		err = d.register(ns.annexed.Annex(), &opened.annex)
	}
	if err != nil {
		d.target.namespaces.release(ns)
		d.target.log.Error("register a namespace", "host", d.conn, "namespace", nsid, "error", err)
		return nil, nvme.InternalError
	}
	d.held = append(d.held, ns)
	for len(d.open) < int(nsid) {
		d.open = append(d.open, new(disk))
	}
	d.open[nsid-1] = opened
	return opened, nvme.Success
}

// register registers memory that is the connection's until its end.
func (d *disks) register(memory []byte, all *mem.Segment) error {
	region, err := d.conn.Register(memory, hw.LocalRead|hw.LocalWrite)
	if err == nil {
		*all = region.Segment(0, 1)
	}
	return err
}

// openAll registers the memory of all namespaces, so that the first commands don't
// wait for it. One that can't be registered now is tried again by its commands, which
// tell the host.
func (d *disks) openAll() {
	for i := range *d.target.namespaces.list.Load() {
		d.disk(uint32(i + 1))
	}
}

// giveBack gives the namespaces of a queue back. Its connection is closed.
func (d *disks) giveBack(q *queue) {
	for _, ns := range d.held {
		ns.worker.drop(q)
		d.target.namespaces.release(ns)
	}
	d.open, d.held = nil, nil
}
