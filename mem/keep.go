package mem

import "sync"

// kept holds every region that is registered. A device works on a region whether
// or not the program still remembers it, so the collector must not take it: its
// memory would be used again, and a pinner that is collected before Unpin ends
// the program.
var kept struct {
	sync.Mutex
	lmrs map[*LMR]struct{}
}

func keep(l *LMR) {
	kept.Lock()
	defer kept.Unlock()
	if kept.lmrs == nil {
		kept.lmrs = make(map[*LMR]struct{})
	}
	kept.lmrs[l] = struct{}{}
}

func unkeep(l *LMR) {
	kept.Lock()
	defer kept.Unlock()
	delete(kept.lmrs, l)
}
