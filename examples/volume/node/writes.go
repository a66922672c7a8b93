package node

import (
	"slices"
	"time"

	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/entry"
)

// fill is a slot into which a host's data comes.
type fill struct {
	slot  uint32
	reign uint64
}

// fills are those of all reigns.
type fills map[*target.Write]fill

// has reports whether data may still come into a slot.
func (all fills) has(slot uint32) bool {
	for _, f := range all {
		if f.slot == slot {
			return true
		}
	}
	return false
}

// enter finds room for a write of a host at this node.
func (c *consensus) enter(w *target.Write) {
	if c.refusal() != nil && c.corridor.open() {
		c.corridor.place(w)
		return
	}
	c.place(w)
}

// place finds a slot for a write.
func (c *consensus) place(w *target.Write) {
	if err := c.refusal(); err != nil {
		w.Done(err)
		return
	}
	if w.Len > c.cfg.Layout.SlotSize {
		w.Done(nvme.StatusError(nvme.InvalidField | nvme.DoNotRetry))
		return
	}
	c.reign.placing = append(c.reign.placing, w)
	c.reign.placeAll()
}

// placeAll gives free slots to the writes that wait for one. A slot into which data of an earlier reign
// may still come waits for that.
func (r *reign) placeAll() {
	for len(r.placing) != 0 {
		slot, ok := r.pool.Take()
		if !ok {
			return
		}
		if r.c.filling.has(slot) {
			r.stash[slot] = true
			continue
		}
		w := r.placing[0]
		r.placing = r.placing[1:]
		r.c.filling[w] = fill{slot, r.number}
		r.c.journal.Forget(slot)
		w.Placed(r.c.journal.Offset(slot))
	}
}

// give gives back a slot that no entry names.
func (r *reign) give(slot uint32) {
	r.pool.Drop(slot)
	r.placeAll()
}

// unfill ends the transfer into a write's slot. It reports whether the slot is of this reign.
func (c *consensus) unfill(w *target.Write) (slot uint32, ok bool) {
	f := c.filling[w]
	delete(c.filling, w)
	if c.reign == nil {
		return 0, false
	}
	if f.reign == c.reign.number {
		return f.slot, true
	}
	if c.reign.stash[f.slot] {
		delete(c.reign.stash, f.slot)
		c.reign.give(f.slot)
	}
	return 0, false
}

// take brings a write whose data has come to the log.
func (c *consensus) take(w *target.Write) {
	if _, on := c.corridor.rooms[w]; on {
		c.corridor.take(w)
		return
	}
	c.reign.admit(w.From, func(err error) {
		if err != nil {
			c.drop(w)
			w.Done(err)
			return
		}
		c.commit(w)
	})
}

// admit runs a change of a host at this node when it has the host's pass. Without a reign it refuses.
func (r *reign) admit(from target.Origin, run func(error)) {
	if r == nil {
		run(errChange)
		return
	}
	r.passes.admit(from, func(_ pass, err error) { run(err) })
}

// commit proposes a write whose data has come.
func (c *consensus) commit(w *target.Write) {
	slot, ok := c.unfill(w)
	if !ok {
		w.Done(errChange)
		return
	}
	e := entry.Entry{Op: entry.Write, Off: uint64(w.Offset), Len: uint32(w.Len), Slot: slot}
	large := w.Len >= smallest
	if large {
		e, _ = c.journal.Seal(e) // the slot is the pool's
	} else {
		e.Op, e.Slot = entry.Small, 0
		e.Data, _ = c.journal.Slot(slot, w.Len) // the same
		e = e.Sealed(e.Data)
	}
	sent := c.reign.propose(proposal{data: e.Append(nil), slot: slot, large: large, done: w.Done})
	if !large || !sent {
		c.reign.give(slot)
	}
}

// drop gives up a write whose connection has ended.
func (c *consensus) drop(w *target.Write) {
	c.corridor.drop(w)
	if _, placed := c.filling[w]; placed {
		if slot, ok := c.unfill(w); ok {
			c.reign.give(slot)
		}
	} else if r := c.reign; r != nil {
		r.placing = slices.DeleteFunc(r.placing, func(other *target.Write) bool { return other == w })
	}
}

// propose proposes an entry, and reports whether it did.
func (r *reign) propose(p proposal) bool {
	if err := r.c.raft.Propose(p.data); err != nil {
		p.done(errChange)
		return false
	}
	p.begun = time.Now()
	r.proposed = append(r.proposed, p)
	return true
}

// zero makes a range read as zeros, for a host at this node.
func (c *consensus) zero(from target.Origin, off, size int, done func(error)) {
	err := c.refusal()
	switch {
	case err != nil && c.corridor.open():
		c.corridor.zero(from, off, size, done)
	case err != nil:
		done(err)
	default:
		c.reign.admit(from, func(err error) {
			if err != nil {
				done(err)
				return
			}
			c.proposeZero(off, size, done)
		})
	}
}

// proposeZero proposes to make a range read as zeros.
func (c *consensus) proposeZero(off, size int, done func(error)) {
	if err := c.refusal(); err != nil {
		done(err)
		return
	}
	e := entry.Entry{Op: entry.Zero, Off: uint64(off), Len: uint32(size)}.Sealed(nil)
	c.reign.propose(proposal{data: e.Append(nil), done: done})
}
