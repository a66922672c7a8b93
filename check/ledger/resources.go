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

// restored reports whether the process holds nothing beyond s. Goroutines may be
// fewer: some that were ending when s was taken may have ended. They are counted
// first, since the others take far longer to count.
func (s resources) restored() bool {
	return runtime.NumGoroutine() <= s.goroutines && countDescriptors() == s.descriptors && countMappings() == s.mappings
}

// compare complains unless the process holds what it held when s was taken, and the
// closed adapters hold no memory. It waits for goroutines that are ending.
func (s resources) compare(w *world) {
	for deadline := time.Now().Add(w.cfg.Patience); !s.restored() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	now := heldResources()
	if now.descriptors != s.descriptors || now.mappings != s.mappings {
		w.complain(Leak, "before: %+v, afterwards: %+v", s, now)
	}
	if now.goroutines > s.goroutines {
		stacks := make([]byte, 1<<16)
		w.complain(Leak, "%d goroutines before, %d afterwards: %s", s.goroutines, now.goroutines, stacks[:runtime.Stack(stacks, true)])
	}
	for _, ad := range w.ias {
		if s := ad.ia.MemoryStats(); s != (dat.MemoryStats{}) {
			w.complain(Leak, "a closed adapter has %d regions of %d bytes, %d ranges of %d bytes mapped, %d windows and %d zones",
				s.Regions, s.Bytes, s.Mapped, s.MappedBytes, s.Windows, s.Zones)
		}
	}
}
