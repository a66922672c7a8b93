package conformance

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/hw"
	dat "godat/runtime"
)

// remains finds what has been left behind in the process since it was made:
// goroutines and descriptors.
type remains struct {
	goroutines  goleak.Option
	descriptors int
}

func watch() *remains { return &remains{goleak.IgnoreCurrent(), descriptors()} }

// find says what is left. What is about to end may take that long.
func (w *remains) find(limit time.Duration) error {
	if err := goleak.Find(w.goroutines); err != nil {
		return err
	}
	end := time.Now().Add(limit)
	for descriptors() > w.descriptors {
		if time.Now().After(end) {
			return fmt.Errorf("%d descriptors are open, and there were %d", descriptors(), w.descriptors)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// descriptors counts what the process has open, or 0 where that can't be told.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// books says what memory an adapter still has: regions, windows, zones and mappings.
func books(ia *dat.IA) error {
	s := ia.MemoryStats()
	if s == (dat.MemoryStats{}) {
		return nil
	}
	return fmt.Errorf("left: %d regions of %d bytes, %d windows, %d zones, %d mappings of %d bytes",
		s.Regions, s.Bytes, s.Windows, s.Zones, s.Mapped, s.MappedBytes)
}

// closeAdapter closes an adapter, and says what was left on it before, and what is
// left in its books. One that is closed already is no fault.
func closeAdapter(ia *dat.IA) error {
	err := ia.CloseGraceful()
	if errors.Is(err, dat.ErrInvalidHandle) {
		err = nil
	}
	return errors.Join(err, ia.Close(), books(ia))
}

// watchLeaks has the case fail that leaves something behind.
func (r *rig) watchLeaks() {
	w := watch()
	r.Cleanup(func() {
		if r.Failed() {
			return // what is left then is no news
		}
		assert.NoError(r, w.find(patience))
		if r.p.After != nil {
			r.p.After(r)
		}
	})
}

// closeAll closes what the case has made, the last first, and then the adapters,
// which refuse when something is left. What the case has closed itself is closed
// once more, which must do nothing.
func (r *rig) closeAll() {
	if r.Failed() {
		r.giveUp()
		return
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		assert.NoError(r, r.undo[i]())
	}
	for _, ia := range r.ias {
		assert.NoError(r, closeAdapter(ia))
	}
}

// giveUp closes what a case that failed has made, in any way.
func (r *rig) giveUp() {
	for _, ia := range r.ias {
		_ = ia.Close()
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		_ = r.undo[i]()
	}
}

// code is a return code to match an error with.
func code(t hw.Type, sub hw.Subtype) error { return &hw.Error{Type: t, Sub: sub} }
