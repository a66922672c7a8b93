package loop

import (
	"godat/hw/internal/soft"
	"godat/internal/token"
)

var _ soft.Accessor = (*pipe)(nil)

// busy is a pipe in which accesses were in progress, or may have been: those of the holder
// of its token, and those of PostOne.
type busy struct {
	p     *pipe
	w     uint64 // the token's word
	owned bool   // the source's owner was in a call
	calls uint64 // and these were its calls
}

// grace waits until every access that was in progress when it was called has ended.
// Its caller has removed the key before grace reads a pipe's word, and a holder or
// worker writes the word before it looks a key up: so the next holder of a pipe that
// grace sees idle finds the key dead. An owner writes its own word in the same way before
// PostOne.
func (d *device) grace() {
	for _, b := range d.inProgress(nil, nil) {
		b.await()
	}
}

// await waits until the accesses have ended.
func (b *busy) await() {
	for spin := 0; !b.over(); spin++ {
		pause(spin)
	}
}

// over reports whether the accesses have ended. An owner that is always in a call when over
// looks ends one of them after the other, and counts them.
func (b *busy) over() bool {
	p := b.p
	if b.w&token.Held != 0 && !p.token.MovedOn(b.w) {
		return false
	}
	return !b.owned || p.calls.Load() != b.calls || !p.owned()
}

// busy returns what is in progress in the pipe now, if anything may be. It looks at the
// owner's word first: when that has the bit, the count has all of the owner's calls before
// the one that may be in progress.
func (p *pipe) busy() (b busy, ok bool) {
	b = busy{p: p, w: p.token.Load(), owned: p.owned()}
	if b.owned {
		b.calls = p.calls.Load()
	}
	return b, b.owned || b.w&token.Held != 0
}

// Settle is grace for one pipe; see [soft.Accessor].
func (p *pipe) Settle() {
	if b, ok := p.busy(); ok {
		b.await()
	}
}

// inProgress appends to all the device's pipes that are busy, except but.
func (d *device) inProgress(but *pipe, all []busy) []busy {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	for _, p := range d.pipes {
		if b, ok := p.busy(); ok && p != but {
			all = append(all, b)
		}
	}
	return all
}

// addPipe adds a pipe to those that grace looks at, before any goroutine can run it.
func (d *device) addPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	p.places[p.side(d)] = int32(len(d.pipes))
	d.pipes = append(d.pipes, p)
}

// dropPipe removes a pipe that touches no memory any more.
func (d *device) dropPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	i, last := p.places[p.side(d)], int32(len(d.pipes)-1)
	moved := d.pipes[last]
	d.pipes[i] = moved
	moved.places[moved.side(d)] = i
	d.pipes[last] = nil
	d.pipes = d.pipes[:last]
}
