package ledger

import (
	"runtime"
	"time"

	dat "godat/runtime"
)

// stock is what a process holds that must be given back.
type stock struct {
	goroutines  int
	descriptors int // 0 where they can't be counted
	mappings    int // of registered memory; 0 where they can't be counted
}

func takeStock() stock {
	return stock{goroutines: runtime.NumGoroutine(), descriptors: countDescriptors(), mappings: countMappings()}
}

// restored reports whether nothing is left of what came after s was taken. There
// may be fewer goroutines: what ran before may have been ending when they were
// counted first.
func (s stock) restored(now stock) bool {
	return now.goroutines <= s.goroutines && now.descriptors == s.descriptors && now.mappings == s.mappings
}

// compare demands that the stock is what it was. Goroutines that have been told to
// end may take a moment.
func (s stock) compare(w *world) {
	now := takeStock()
	for deadline := time.Now().Add(w.cfg.Patience); !s.restored(now) && time.Now().Before(deadline); now = takeStock() {
		time.Sleep(time.Millisecond)
	}
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
