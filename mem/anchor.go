package mem

import "sync"

// anchored holds every registered region. A device works on a region even if the
// program has forgotten it, so the garbage collector must not free it: its memory
// would be used again, and a pinner that is collected before Unpin makes the
// runtime panic.
var anchored struct {
	sync.Mutex
	lmrs map[*LMR]struct{}
}

func anchor(l *LMR) {
	anchored.Lock()
	defer anchored.Unlock()
	if anchored.lmrs == nil {
		anchored.lmrs = make(map[*LMR]struct{})
	}
	anchored.lmrs[l] = struct{}{}
}

func unanchor(l *LMR) {
	anchored.Lock()
	defer anchored.Unlock()
	delete(anchored.lmrs, l)
}
