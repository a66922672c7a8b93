package mem

import (
	"errors"
	"math"
	"os"
	"unsafe"

	"godat/hw"
	"godat/internal/door"
)

// Regions are regions of a zone that end together, those of a connection of package runtime, which
// alone has any. A region that was freed is none of them any more. The zero value is empty, and can
// make none. Any goroutine may call the methods but In.
type Regions struct {
	pz  *PZ
	all set[*LMR]
}

// In sets the zone, before all other calls.
func (r *Regions) In(_ door.Key, pz *PZ) { r.pz = pz }

// Alloc is [PZ.Alloc] of memory on the Go heap, which the garbage collector gives back when
// nobody has a slice of it any more: neither the end of the region nor Free takes it away.
func (r *Regions) Alloc(op string, size int, priv hw.Privileges) (*LMR, error) {
	p := r.pz
	if err := p.begin(op, size, priv, nil); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	buf, err := heapPages(size)
	if err != nil {
		p.zone.Unuse()
		return nil, hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "%d bytes: %w", size, err)
	}
	return p.register(op, buf, priv, r)
}

// Register is [PZ.Register].
func (r *Regions) Register(op string, buf []byte, priv hw.Privileges) (*LMR, error) {
	p := r.pz
	if err := p.begin(op, len(buf), priv, nil); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock()
	return p.register(op, buf, priv, r)
}

// End ends all regions, and leaves their memory to the program. It returns the errors of
// those that could not be ended, which remain.
func (r *Regions) End() error {
	var errs []error
	for _, l := range r.all.all() {
		errs = append(errs, l.end())
	}
	return errors.Join(errs...)
}

// Len is how many regions there are.
func (r *Regions) Len() int {
	n, _ := r.all.size()
	return n
}

func (r *Regions) begun(l *LMR) { r.all.add(l, 0) }

func (r *Regions) dying() {}

func (r *Regions) ended(l *LMR) error {
	r.all.drop(l, 0)
	return nil
}

const (
	probeFrom   = 64 << 20 // bytes, from which on heapPages asks the system first
	discardFrom = 1 << 20  // bytes, from which on it gives the pages back until they are used
)

// heapPages returns zeroed memory of the Go heap that begins at a page. A program that asks
// Go for more memory than there is ends; so for much, heapPages maps and unmaps as much
// before, and returns the system's error. It discards the pages that Go has cleared where
// the system can, because a peer may never write to most of what it is shown.
func heapPages(size int) ([]byte, error) {
	page := os.Getpagesize()
	if size > math.MaxInt-2*page {
		return nil, errTooLarge
	}
	if size >= probeFrom {
		probe, err := mapPages(roundUp(size, page)+page, false)
		if err == nil {
			err = unmapPages(probe)
		}
		if err != nil {
			return nil, err
		}
	}
	whole := make([]byte, size+page-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(whole))) & uintptr(page-1))
	buf := whole[off : off+size : off+size]
	if size >= discardFrom {
		discard(buf[:size/page*page])
	}
	return buf, nil
}
