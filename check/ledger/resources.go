package ledger

import (
	"runtime"
	"time"

	dat "godat/runtime"
)

// resources is what a process holds and must give back.
type resources struct {
	goroutines  int
	descriptors int // 0 where they can't be counted
	mappings    int // of registered memory; 0 where they can't be counted
}

func heldResources() resources {
	return resources{goroutines: runtime.NumGoroutine(), descriptors: countDescriptors(), mappings: countMappings()}
}

// compare complains unless the process holds what it held when s was taken, and the
// closed adapters hold no memory. It waits for goroutines that are ending. Goroutines
// may be fewer: some that were ending when s was taken may have ended.
func (s resources) compare(w *world) {
	var now resources
	for deadline := time.Now().Add(w.cfg.Patience); ; time.Sleep(time.Millisecond) {
		last := time.Now().After(deadline)
		if runtime.NumGoroutine() > s.goroutines && !last {
			continue // the others take far longer to count
		}
		now = heldResources()
		if now.goroutines = max(now.goroutines, s.goroutines); now == s || last {
			break
		}
	}
	if now != s {
		stacks := make([]byte, 1<<16)
		w.complain(Leak, "before: %+v, afterwards: %+v, goroutines: %s", s, now, stacks[:runtime.Stack(stacks, true)])
	}
	for _, ad := range w.ias {
		if s := ad.ia.MemoryStats(); s != (dat.MemoryStats{}) {
			w.complain(Leak, "a closed adapter has %d regions of %d bytes, %d ranges of %d bytes mapped, %d windows and %d zones",
				s.Regions, s.Bytes, s.Mapped, s.MappedBytes, s.Windows, s.Zones)
		}
	}
}
