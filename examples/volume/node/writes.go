package node

import (
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/entry"
)

// place finds room for a write.
func (n *Node) place(w *target.Write) {
	if err := n.refusal(); err != nil {
		w.Done(err)
		return
	}
	if w.Len > n.cfg.Layout.SlotSize {
		w.Done(nvme.StatusError(nvme.InvalidField | nvme.DoNotRetry))
		return
	}
	n.reign.placing = append(n.reign.placing, w)
	n.placeAll()
}

// placeAll gives free slots to the writes that wait for one.
func (n *Node) placeAll() {
	r := n.reign
	if r == nil {
		return
	}
	for len(r.placing) != 0 {
		slot, ok := r.pool.Take()
		if !ok {
			return
		}
		if n.isFilling(slot) {
			r.stash[slot] = true
			continue
		}
		w := r.placing[0]
		r.placing = r.placing[1:]
		n.filling[w] = fill{slot, r.number}
		w.Placed(n.journal.Offset(slot))
	}
}

// isFilling reports whether data of an earlier reign may still come into a slot.
func (n *Node) isFilling(slot uint32) bool {
	for _, f := range n.filling {
		if f.slot == slot {
			return true
		}
	}
	return false
}

// unfill ends the transfer into a write's slot. It reports whether the slot is of this reign.
func (n *Node) unfill(w *target.Write) (slot uint32, ok bool) {
	f := n.filling[w]
	delete(n.filling, w)
	if n.reign == nil {
		return 0, false
	}
	if f.reign == n.reign.number {
		return f.slot, true
	}
	if n.reign.stash[f.slot] {
		delete(n.reign.stash, f.slot)
		n.reign.pool.Drop(f.slot)
		n.placeAll()
	}
	return 0, false
}

// take proposes a write whose data has come.
func (n *Node) take(w *target.Write) {
	slot, ok := n.unfill(w)
	if !ok {
		w.Done(errChange)
		return
	}
	data, _ := n.journal.Slot(slot, w.Len) // the slot is the pool's
	e := entry.Entry{Op: entry.Write, Off: uint64(w.Offset), Len: uint32(w.Len), Slot: slot, CRC: entry.Sum(data)}
	large := w.Len >= smallest
	if !large {
		e.Op, e.Slot, e.Data = entry.Small, 0, data
	}
	sent := n.propose(e.Append(nil), slot, large, w.Done)
	if !large || !sent {
		n.reign.pool.Drop(slot)
		n.placeAll()
	}
}

// drop gives up a write whose connection has ended.
func (n *Node) drop(w *target.Write) {
	if _, placed := n.filling[w]; placed {
		if slot, ok := n.unfill(w); ok {
			n.reign.pool.Drop(slot)
			n.placeAll()
		}
		return
	}
	if r := n.reign; r != nil {
		for i := range r.placing {
			if r.placing[i] == w {
				r.placing = append(r.placing[:i:i], r.placing[i+1:]...)
				return
			}
		}
	}
}

// propose proposes an entry, and reports whether it did. done hears what became of it.
func (n *Node) propose(data []byte, slot uint32, large bool, done func(error)) bool {
	if err := n.raft.Propose(data); err != nil {
		done(errChange)
		return false
	}
	n.reign.proposed = append(n.reign.proposed, proposal{data: data, slot: slot, large: large, done: done})
	return true
}

// zero proposes to make a range read as zeros.
func (n *Node) zero(off, size int, done func(error)) {
	if err := n.refusal(); err != nil {
		done(err)
		return
	}
	e := entry.Entry{Op: entry.Zero, Off: uint64(off), Len: uint32(size)}
	n.propose(e.Append(nil), 0, false, done)
}
