package sim

// maxPieces is how many pieces of memory one chunk may consist of.
const maxPieces = 8

// piece is a copy to make with sim.mu released. Both regions are busy until it is made.
type piece struct {
	dst, src []byte
	dmr, smr *region
}

// move copies a chunk of at most n bytes from byte off of src to byte off of dst. It
// returns the number of bytes, and whether a region of either span is not valid any
// more. It looks the keys up with sim.mu held, so it never accesses a dead region, and
// releases sim.mu while it copies.
func (d *Device) move(dst, src *span, off, n uint64) (moved uint64, dstGone, srcGone bool) {
	var pieces [maxPieces]piece
	k := 0
	n = min(n, uint64(d.sim.cfg.Chunk))
	for ; k < len(pieces) && moved < n; k++ {
		p := &pieces[k]
		if p.dst, p.dmr = dst.at(off + moved); p.dst == nil {
			dstGone = true
			break
		}
		if p.src, p.smr = src.at(off + moved); p.src == nil {
			srcGone = true
			break
		}
		m := min(uint64(len(p.dst)), uint64(len(p.src)), n-moved)
		p.dst, p.src = p.dst[:m], p.src[:m]
		p.dmr.busy++
		p.smr.busy++
		moved += m
	}
	if k == 0 {
		return 0, dstGone, srcGone
	}
	mu := &d.sim.mu
	mu.Unlock()
	for i := range pieces[:k] {
		copy(pieces[i].dst, pieces[i].src)
	}
	mu.Lock()
	for i := range pieces[:k] {
		pieces[i].dmr.idle()
		pieces[i].smr.idle()
	}
	return moved, dstGone, srcGone
}

// idle counts the end of a copy, and wakes Deregister after the last.
func (m *region) idle() {
	if m.busy--; m.busy == 0 && m.dead {
		m.dev.unbusy.Broadcast()
	}
}
