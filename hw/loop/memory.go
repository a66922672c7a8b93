package loop

import (
	"godat/hw/internal/soft"
	"godat/internal/token"
)

var _ soft.Accessor = (*pipe)(nil)

// busy is a pipe that is held, and its word at that time.
type busy struct {
	p *pipe
	w uint64
}

// grace waits until every access that was in progress when it was called has ended.
// Its caller has removed the key before grace reads a pipe's word, and a holder or
// worker writes the word before it looks a key up: so the next holder of a pipe that
// grace sees idle finds the key dead.
func (d *device) grace() {
	for _, b := range d.inProgress(nil, nil) {
		b.p.await(b.w)
	}
}

// await waits until the access that was in progress at that word of the token has ended.
func (p *pipe) await(w uint64) {
	for spin := 0; !p.token.MovedOn(w); spin++ {
		pause(spin)
	}
}

// Settle is grace for one pipe; see [soft.Accessor].
func (p *pipe) Settle() {
	if w := p.token.Load(); w&token.Held != 0 {
		p.await(w)
	}
}

// inProgress appends to all the device's pipes that are held, except but.
func (d *device) inProgress(but *pipe, all []busy) []busy {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	for _, p := range d.pipes {
		if w := p.token.Load(); w&token.Held != 0 && p != but {
			all = append(all, busy{p, w})
		}
	}
	return all
}

// addPipe adds a pipe to those that grace looks at, before any goroutine can run it.
func (d *device) addPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	p.places[p.side(d)] = len(d.pipes)
	d.pipes = append(d.pipes, p)
}

// dropPipe removes a pipe that touches no memory any more.
func (d *device) dropPipe(p *pipe) {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	i, last := p.places[p.side(d)], len(d.pipes)-1
	moved := d.pipes[last]
	d.pipes[i] = moved
	moved.places[moved.side(d)] = i
	d.pipes[last] = nil
	d.pipes = d.pipes[:last]
}
