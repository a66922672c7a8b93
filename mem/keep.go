package mem

import "sync"

// kept holds every registered region. A device works on a region even if the
// program has forgotten it, so the garbage collector must not free it: its memory
// would be used again, and a pinner that is collected before Unpin makes the
// runtime panic.
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
