package host

import (
	"context"
	"fmt"

	"godat/examples/nvmeof/nvme"
)

// Pipeline is an I/O queue of one goroutine's own, which keeps many commands under way
// without a goroutine for each. The goroutine gives slots to the pipeline, each with a
// command, and Wait gives back those that are done. KeepBusy is this loop:
//
//	for i := range p.Slots() {
//		err := p.Write(disk, &p.Slots()[i], n, off) // goes out with the next Wait
//	}
//	for {
//		done, err := p.Wait(ctx)
//		for _, s := range done { // s.Err says what came of it; s is the program's again
//			err := p.Write(disk, s, n, off)
//		}
//	}
//
// Data is sent from a slot's memory and arrives there, without a copy. A pipeline
// allocates nothing for a command.
type Pipeline struct{ link *link }

// Pipeline connects an I/O queue for the caller, of as many as Config.Pipelines says and
// the target grants. It ends with Pipeline.Close, or with the controller.
func (c *Controller) Pipeline(ctx context.Context) (*Pipeline, error) {
	c.pipes.Lock()
	defer c.pipes.Unlock()
	if len(c.pipelines) >= c.spare {
		return nil, fmt.Errorf("host: all %d pipelines are in use", c.spare)
	}
	l, err := c.openIO(ctx, len(c.queues)+len(c.pipelines))
	if err != nil {
		return nil, err
	}
	c.pipelines = append(c.pipelines, l)
	return &Pipeline{l}, nil
}

// Slots are the pipeline's slots, as many as a queue has entries but one. They are the
// caller's, except between a Write, Read or Submit and the Wait that returns them.
func (p *Pipeline) Slots() []Slot { return p.link.slots }

// Index is the slot's place in Pipeline.Slots.
func (s *Slot) Index() int { return s.index }

// Write submits a command that writes the first n bytes of the slot's Data to the disk at
// an offset. Both are multiples of the block size. The error says that they are not, that
// n is more than Data has, or that the slot is under way.
func (p *Pipeline) Write(d *Disk, s *Slot, n int, off int64) error {
	return p.move(nvme.IOWrite, d, s, n, off)
}

// Read submits a command that reads n bytes of the disk into the slot's Data; see Write.
func (p *Pipeline) Read(d *Disk, s *Slot, n int, off int64) error {
	return p.move(nvme.IORead, d, s, n, off)
}

func (p *Pipeline) move(op nvme.Opcode, d *Disk, s *Slot, n int, off int64) error {
	c := nvme.Command{Opcode: op, NSID: d.nsid}
	if err := d.aim(&c, off, int64(n)); err != nil {
		return err
	}
	return p.submit(s, &c, n, op != nvme.IORead)
}

// Submit submits any I/O command, with the first n bytes of the slot's Data for its data;
// see Write.
func (p *Pipeline) Submit(s *Slot, c nvme.Command, n int) error { return p.submit(s, &c, n, false) }

func (p *Pipeline) submit(s *Slot, c *nvme.Command, n int, inline bool) error {
	if n < 0 || n > len(s.Data) {
		return fmt.Errorf("host: %d bytes of data; a slot has %d", n, len(s.Data))
	}
	if s.stage != idle {
		return fmt.Errorf("host: the command of slot %d is under way", s.index)
	}
	p.link.submit(s, c, n, inline)
	return nil
}

// Flush sends what was submitted, as one batch. Wait does so, too.
func (p *Pipeline) Flush() { p.link.flush() }

// Wait sends what was submitted, waits until a command is done, and returns all that are.
// They are valid until the next Wait. When the connection has ended, the error matches
// ErrEnded; the commands under way are lost then. When ctx ends first, the error is its
// cause, and Wait may be called again.
func (p *Pipeline) Wait(ctx context.Context) ([]*Slot, error) {
	err := p.link.wait(ctx)
	return p.link.done, err
}

// KeepBusy keeps a command under way in each slot until ctx ends, and then waits for those
// that are. It calls begin for each slot, and again when the slot's command is done;
// begin submits the slot's next command. It returns how many commands were done. When a
// command or begin fails, it returns that error at once, and leaves the others under way.
func (p *Pipeline) KeepBusy(ctx context.Context, begin func(*Slot) error) (commands int64, err error) {
	slots := p.Slots()
	for i := range slots {
		if err := begin(&slots[i]); err != nil {
			return 0, err
		}
	}
	for under := len(slots); under > 0; {
		done, err := p.Wait(context.Background())
		if err != nil {
			return commands, err
		}
		over := ctx.Err() != nil
		if over {
			under -= len(done)
		}
		for _, s := range done {
			commands++
			if s.Err != nil {
				return commands, s.Err
			}
			if over {
				continue
			}
			if err := begin(s); err != nil {
				return commands, err
			}
		}
	}
	return commands, nil
}

// Close ends the connection in order. Commands under way are lost.
func (p *Pipeline) Close() error { return p.link.close() }
