package loop

// busy is a pipe in the middle of something, and its word at that time.
type busy struct {
	p *pipe
	w uint64
}

// grace waits until nothing that was in progress when it was called still is.
// The key was removed before a word is read here, and a pipe is taken, or taken
// up again, by a write to its word before it looks a key up: so a pipe seen idle
// here finds the key dead.
func (d *device) grace() {
	for _, b := range d.inProgress(nil, nil) {
		for spin := 0; !b.p.movedOn(b.w); spin++ {
			pause(spin)
		}
	}
}

// inProgress appends to all what is in progress, but for one pipe.
func (d *device) inProgress(but *pipe, all []busy) []busy {
	d.pipesMu.Lock()
	defer d.pipesMu.Unlock()
	for _, p := range d.pipes {
		if w := p.word.Load(); w&held != 0 && p != but {
			all = append(all, busy{p, w})
		}
	}
	return all
}

// addPipe adds a pipe to those that grace looks at, before anybody can run it.
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
