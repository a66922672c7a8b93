package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"godat/examples/nvmeof/nvme"
)

// Disk is a namespace. Offsets and lengths are in bytes, and multiples of its block
// size. Its methods may be called from any goroutine.
type Disk struct {
	controller *Controller
	nsid       uint32
	about      nvme.Namespace
}

// Disk returns the namespace with an id.
func (c *Controller) Disk(ctx context.Context, nsid uint32) (*Disk, error) {
	page := make([]byte, nvme.PageLen)
	if _, err := c.Admin(ctx, nvme.Identify(nvme.IdentifyNamespacePage, nsid), page); err != nil {
		return nil, err
	}
	about, err := nvme.ParseNamespace(page)
	if err != nil {
		return nil, err
	}
	if about.Blocks == 0 || len(c.queues)+c.spare == 0 {
		return nil, fmt.Errorf("host: namespace %d is not there: %w", nsid, nvme.StatusError(nvme.InvalidNamespace))
	}
	return &Disk{controller: c, nsid: nsid, about: about}, nil
}

// Size is the disk's size in bytes.
func (d *Disk) Size() int64 { return int64(d.about.Blocks) << d.about.BlockShift }

// BlockSize is the size of a block in bytes.
func (d *Disk) BlockSize() int { return 1 << d.about.BlockShift }

// About is what the disk says about itself.
func (d *Disk) About() nvme.Namespace { return d.about }

// Command returns a command about the disk, for Disk.Do and Pipeline.Submit.
func (d *Disk) Command(op nvme.Opcode) nvme.Command { return nvme.Command{Opcode: op, NSID: d.nsid} }

// ReadAt reads blocks, as io.ReaderAt.
func (d *Disk) ReadAt(p []byte, off int64) (n int, err error) {
	if beyond := off + int64(len(p)) - d.Size(); beyond > 0 && off >= 0 && off <= d.Size() {
		if n, err = d.move(nvme.IORead, p[:int64(len(p))-beyond], off, 0); err == nil {
			err = io.EOF
		}
		return n, err
	}
	return d.move(nvme.IORead, p, off, 0)
}

// WriteAt writes blocks, as io.WriterAt. They are stable after Flush.
func (d *Disk) WriteAt(p []byte, off int64) (n int, err error) {
	return d.move(nvme.IOWrite, p, off, 0)
}

// WriteStable is WriteAt for blocks that are stable when it returns.
func (d *Disk) WriteStable(p []byte, off int64) (n int, err error) {
	return d.move(nvme.IOWrite, p, off, nvme.ForceUnitAccess)
}

// Compare compares blocks with p. If they differ, the error is nvme.CompareFailure.
func (d *Disk) Compare(p []byte, off int64) error {
	_, err := d.move(nvme.IOCompare, p, off, 0)
	return err
}

// move splits a transfer into commands, one after the other.
func (d *Disk) move(op nvme.Opcode, p []byte, off int64, bits uint32) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(n+d.controller.cfg.Transfer, len(p))]
		if err = d.one(op, part, off+int64(n), bits); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// one runs one command that moves data.
func (d *Disk) one(op nvme.Opcode, p []byte, off int64, bits uint32) error {
	command := nvme.Command{Opcode: op, NSID: d.nsid, CDW12: bits}
	if err := d.aim(&command, off, int64(len(p))); err != nil {
		return err
	}
	q, err := d.controller.queue()
	if err != nil {
		return err
	}
	s, err := q.acquire(context.Background())
	if err != nil {
		return err
	}
	if op != nvme.IORead {
		copy(s.Data, p)
	}
	_, err = q.exchange(context.Background(), s, command, len(p), op != nvme.IORead)
	if err == nil && op == nvme.IORead {
		copy(p, s.Data)
	}
	q.release(s, err)
	return err
}

// aim makes a command be about a range.
func (d *Disk) aim(c *nvme.Command, off, n int64) error {
	if mask := int64(d.BlockSize() - 1); off < 0 || n <= 0 || (off|n)&mask != 0 || n>>d.about.BlockShift > 1<<16 {
		return fmt.Errorf("host: %d bytes from %d on are no blocks of %d bytes", n, off, d.BlockSize())
	}
	c.SetRange(uint64(off)>>d.about.BlockShift, uint32(n>>d.about.BlockShift))
	return nil
}

// Flush makes stable what was written before.
func (d *Disk) Flush(ctx context.Context) error {
	_, err := d.controller.do(ctx, nvme.Command{Opcode: nvme.IOFlush, NSID: d.nsid}, nil)
	return err
}

// WriteZeroes makes a range read as zeros. With deallocate the target may give up its
// space.
func (d *Disk) WriteZeroes(ctx context.Context, off, n int64, deallocate bool) error {
	command := nvme.Command{Opcode: nvme.IOWriteZeroes, NSID: d.nsid}
	if deallocate {
		command.CDW12 = nvme.Deallocate
	}
	if err := d.aim(&command, off, n); err != nil {
		return err
	}
	_, err := d.controller.do(ctx, command, nil)
	return err
}

// Deallocate tells the target that ranges are not needed, at most nvme.MaxRanges.
func (d *Disk) Deallocate(ctx context.Context, ranges ...nvme.Range) error {
	if len(ranges) < 1 || len(ranges) > nvme.MaxRanges {
		return fmt.Errorf("host: %d ranges; there may be 1 to %d", len(ranges), nvme.MaxRanges)
	}
	list := make([]byte, 0, len(ranges)*nvme.RangeLen)
	for _, r := range ranges {
		list = r.Append(list)
	}
	_, err := d.controller.do(ctx, nvme.Command{
		Opcode: nvme.IODataset, NSID: d.nsid, CDW10: uint32(len(ranges) - 1), CDW11: nvme.DatasetDeallocate,
	}, list)
	return err
}

// Do runs any I/O command, with data at most as long as a slot. The
// command sends them, or returns its own in them.
func (d *Disk) Do(ctx context.Context, command nvme.Command, data []byte) (result uint64, err error) {
	if len(data) > d.controller.cfg.Transfer {
		return 0, fmt.Errorf("host: %d bytes of data; there may be %d", len(data), d.controller.cfg.Transfer)
	}
	return d.controller.do(ctx, command, data)
}

// do runs an I/O command; see queue.do.
func (c *Controller) do(ctx context.Context, command nvme.Command, data []byte) (uint64, error) {
	q, err := c.queue()
	if err != nil {
		return 0, err
	}
	return q.do(ctx, command, data)
}

// queue is the I/O queue whose turn it is.
func (c *Controller) queue() (*queue, error) {
	if len(c.queues) == 0 {
		return nil, errors.New("host: no I/O queue for calls of disks: Config.Queues is 0")
	}
	return c.queues[int(c.turn.Add(1)%uint32(len(c.queues)))], nil
}
