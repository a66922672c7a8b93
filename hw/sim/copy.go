package sim

// maxPieces is how many pieces of memory one chunk may consist of.
const maxPieces = 8

// piece is a copy to make outside the lock. Both regions are busy meanwhile.
type piece struct {
	dst, src []byte
	dmr, smr *region
}

// move copies a chunk of at most n bytes from one span to the other, both from
// byte off on. It reports how many, and whether a region of either had gone;
// keys are looked up here, so what is dead is not touched. sim.mu is let go
// while bytes move.
func (q *queuePair) move(dst, src *span, off, n uint64) (moved uint64, dstGone, srcGone bool) {
	var pieces [maxPieces]piece
	k := 0
	n = min(n, uint64(q.dev.sim.cfg.Chunk))
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
	mu := &q.dev.sim.mu
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

// idle ends a copy.
func (m *region) idle() {
	if m.busy--; m.busy == 0 && m.dead {
		m.dev.unbusy.Broadcast()
	}
}
